"""An error says which fields of a request are wrong, in whichever way its API lists them."""

from __future__ import annotations

import json

import pytest

from skyward.rest.field_errors import wrong_fields
from skyward.rest.reply import Reply

BODIES = [
    # FastAPI's.
    ({"detail": [{"loc": ["body", "gpu", "count"], "msg": "must be above 0"}]}, "gpu.count: must be above 0"),
    # RFC 9457, as RunPod and huma write it.
    (
        {"title": "Unprocessable", "detail": "Validation failed.", "errors": ["$.image: image not found"]},
        "Validation failed. ($.image: image not found)",
    ),
    (
        {"detail": "Validation failed.", "errors": [{"location": "body.size", "message": "is unknown"}]},
        "Validation failed. (size: is unknown)",
    ),
    (
        {"title": "Bad", "errors": [{"pointer": "#/disk/size", "detail": "is too large"}]},
        "Bad (disk.size: is too large)",
    ),
    # JSON:API's.
    ({"errors": [{"source": {"pointer": "/region"}, "detail": "is closed"}]}, "region: is closed"),
    # Laravel's.
    (
        {"message": "Invalid.", "errors": {"name": ["is taken", "is too long."]}},
        "Invalid. (name: is taken, is too long)",
    ),
    ({"error": {"message": "Bad", "details": [{"field": "x", "reason": "no"}]}}, "Bad (x: no)"),
    ({"message": "No such size."}, "No such size."),
    # What names no field, or is none of these shapes.
    ({"message": "No.", "errors": [None, 7, {}]}, "No."),
    (["odd"], "odd"),
]


@pytest.mark.parametrize(("body", "words"), BODIES)
def test_each_field_is_named_with_its_message(body: object, words: str) -> None:
    """After the message of the whole, where there is one."""
    assert words == Reply(method="POST", path="/", status=422, text=json.dumps(body)).words


def test_a_long_list_is_cut() -> None:
    """Eight fields say enough."""
    assert 8 == len(wrong_fields({"errors": [f"field {number}: wrong" for number in range(50)]}))


def test_other_statuses_are_told_by_their_message_alone() -> None:
    """Their details are no fields of the request."""
    text = json.dumps({"message": "Busy.", "details": [{"reason": "RATE_LIMIT"}]})
    assert "Busy." == Reply(method="POST", path="/", status=429, text=text).words
