"""Objects of the user's are described whatever their classes do when they are asked."""

from __future__ import annotations

from skyward.link.described import brief, said, shortened, type_name


class Silent(Exception):
    """An error that has no text to give."""

    def __str__(self) -> str:
        raise SystemExit(1)


def test_an_object_that_cannot_be_asked_is_named_by_its_type() -> None:
    """An exit on the way does not take the process with it."""
    assert f"<{__name__}.Silent whose text cannot be had>" == said(Silent(), str)
    assert f"{__name__}.Silent: <{__name__}.Silent whose text cannot be had>" == brief(Silent())


def test_what_stands_in_the_place_of_a_class_is_named_by_its_text() -> None:
    """Some libraries put other objects there."""
    assert "7" == type_name(7)  # type: ignore[arg-type]
    assert ("KeyError", f"{__name__}.Silent") == (type_name(KeyError), type_name(Silent))


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    """In bytes, and with whole characters."""
    text = shortened("ä" * 1000 + "end", 100)
    assert len(text.encode()) <= 100
    assert (text[0], text[-3:]) == ("ä", "end")
    assert brief(ValueError("x" * 10_000)).startswith("ValueError: xxx")
    assert len(brief(ValueError("x" * 10_000))) <= 500
