"""HTML of texts that are not ours."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, strategies

from skyward.markup import cell, escaped, table


class Reader(HTMLParser):
    """Take the texts and the tags apart."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(strategies.text())
def test_no_text_is_a_tag(text: str) -> None:
    """Whatever a cloud or a function calls itself."""
    reader = Reader()
    reader.feed(f"<i>{escaped(text)}</i>")
    reader.close()
    assert ["i"] == reader.tags


def test_a_quote_does_not_end_an_attribute() -> None:
    """Texts may stand in one."""
    assert '"' not in escaped('" onload="alert(1)')
    assert "'" not in escaped("' onload='alert(1)")


def test_what_moves_a_cursor_is_taken_out() -> None:
    """Notebooks are converted to text as well."""
    assert "loud" == escaped("\x1b[31mloud\x1b[0m\x07")


def test_a_table_has_a_row_for_each_row() -> None:
    """Heads are escaped, cells are HTML already."""
    html = table([[cell("<b>a</b>"), cell("b")]], ["<head>"])
    assert 2 == html.count("<tr")
    assert "&lt;head&gt;" in html
    assert "<b>a</b>" in html
