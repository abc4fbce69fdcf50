"""What leads from one page of a list to the next."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.rest.checked_answer import Misread
from skyward.rest.paging import by_cursor, by_link


@pytest.mark.parametrize(
    ("answer", "params"),
    [
        ({"links": {"next": "https://shed.example/v1/machines?page=2&per_page=200"}}, {"page": "2", "per_page": "200"}),
        ({"links": {"next": None}}, None),
        ({"links": {}}, None),
        ({}, None),
    ],
)
def test_a_link_is_read_as_the_parameters_of_the_next_page(answer: Any, params: object) -> None:
    """A list without one is at its end."""
    assert params == by_link("links.next")(answer)


def test_a_cursor_is_asked_for_by_its_parameter() -> None:
    """None, or no such field, is the end."""
    more = by_cursor("next_token", "after_token")
    assert [{"after_token": "c2"}, None, None] == [more({"next_token": "c2"}), more({"next_token": None}), more({})]


@pytest.mark.parametrize("more", [by_link("next"), by_cursor("next", "after")])
def test_what_is_no_text_is_an_error(more: Any) -> None:
    """What was read so far would be a part of a list."""
    with pytest.raises(Misread, match="'next' is not"):
        more({"next": 2})
