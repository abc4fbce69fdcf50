"""A cloud's refusals as a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError
from skyward.rest import ErrorRow, Reply, is_lost, meaning_by

MEANING = meaning_by(
    [
        ErrorRow(CredentialsError, "Check the key.", status=(401, 403)),
        ErrorRow(CapacityError, call="POST /v1/machines", words=("no capacity",)),
        ErrorRow(QuotaError, "Ask for more.", code=("quota_exceeded",), again=False, of=()),
        ErrorRow(ConfigError, lambda reply: f"See {reply.path}.", status=(422,)),
        ErrorRow(ProvisionError, when=lambda reply: reply.status < 400),
        ErrorRow(ConfigError, "Check the disk.", call="POST /v1/disks/*"),
    ],
    failed=lambda reply: reply.value == {"ok": False},
)


def reply(status: int, body: Any, call: str = "GET /v1/machines") -> Reply:
    method, _, path = call.partition(" ")
    return Reply(method=method, path=path, status=status, text=json.dumps(body))


@pytest.mark.parametrize(
    ("status", "body", "call", "kind", "hint"),
    [
        (401, {}, "GET /v1/machines", CredentialsError, "Check the key."),
        (400, {"message": "No capacity left."}, "POST /v1/machines?x=1", CapacityError, None),
        (429, {"error": "quota_exceeded"}, "GET /v1/sizes", QuotaError, "Ask for more."),
        (422, {"errors": {"disk": ["too small"]}}, "GET /v1/sizes", ConfigError, "See /v1/sizes."),
        (200, {"ok": False}, "GET /v1/sizes", ProvisionError, None),
        (400, {}, "POST /v1/disks/7", ConfigError, "Check the disk."),
    ],
)
def test_the_first_row_that_fits_is_the_meaning(
    status: int, body: Any, call: str, kind: type[Exception], hint: str | None
) -> None:
    """By status, call, code, words or a condition of its own."""
    found = MEANING(reply(status, body, call))
    assert found is not None
    assert (found.kind, found.hint) == (kind, hint)


@pytest.mark.parametrize(
    ("status", "body", "call"),
    [
        (200, {"message": "no capacity"}, "POST /v1/machines"),
        (400, {"message": "no capacity"}, "GET /v1/machines"),
        (400, {}, "POST /v1/disks"),
        (500, "trouble", "POST /v1/machines"),
    ],
)
def test_what_no_row_fits_is_for_the_status(status: int, body: Any, call: str) -> None:
    """A success is one whatever it says, unless the service says otherwise."""
    assert MEANING(reply(status, body, call)) is None


def test_a_call_whose_answer_is_lost_may_have_done_something() -> None:
    """No answer, trouble of the other side and an unreadable success leave that open; a refusal does not."""

    def error(status: int, kind: type[ProvisionError] = ProvisionError) -> ProvisionError:
        found = kind("x")
        found.reply = reply(status, {})  # type: ignore[attr-defined]
        return found

    assert [True, True, True, False] == [is_lost(error(status)) for status in (0, 503, 200, 409)]
    assert not is_lost(error(503, CapacityError))
    assert not is_lost(ProvisionError("x"))
