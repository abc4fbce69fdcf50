"""Every refusal that Verda is known for has one meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError
from skyward.rest import Reply
from skyward_verda.failure import is_gone, meaning, refusals


def reply(status: int, code: str, message: Any, path: str = "/instances") -> Reply:
    """Return an answer."""
    return Reply(method="POST", path=path, status=status, text=json.dumps({"code": code, "message": message}))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(503, "service_unavailable", "Not enough resources to deploy a 1 GPU instance type"), CapacityError),
        (reply(400, "invalid_request", "GPU limit exceeded"), QuotaError),
        (reply(403, "forbidden_action", "Your quota does not allow this"), QuotaError),
        (reply(400, "invalid_request", ["name should not be empty", "x"]), ConfigError),
        (reply(401, "unauthorized_request", "Invalid token"), CredentialsError),
        (reply(400, "invalid_request", "Bad client", path="/oauth2/token"), CredentialsError),
        (reply(402, "insufficient_funds", "No funds"), CredentialsError),
        (reply(400, "insufficient_funds", "No funds"), CredentialsError),
        (reply(403, "forbidden_action", "Can't discontinue a provisioning instance"), ProvisionError),
    ],
)
def test_a_refusal_has_its_meaning_and_is_not_repeated(answer: Reply, kind: type[Exception]) -> None:
    """Some of them come with a status that says something else."""
    found = meaning(answer)
    assert found is not None
    assert (kind, False) == (found.kind, found.again)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 207, 404, 429, 500, 502, 503, 504])
def test_what_says_nothing_of_its_own_is_left_to_its_status(status: int) -> None:
    """An outage is no lack of capacity."""
    assert meaning(Reply(method="GET", path="/x", status=status, text="<html>busy</html>")) is None


@pytest.mark.parametrize(
    ("rows", "failed"),
    [
        ([{"instanceId": "a", "status": "success"}], 0),
        ([{"instanceId": "a", "status": "error", "error": "Busy", "statusCode": 500}], 1),
        ([{"instanceId": "a", "statusCode": 403}], 1),
        ([{"instanceId": "a", "status": "failed"}], 1),
        ([{"instanceId": "a", "error": "Can't discontinue a discontinued instance", "statusCode": 403}], 0),
        ([{"instanceId": "a", "error": "Invalid instance id", "statusCode": 400}], 0),
        ([{"instanceId": "a", "error": "Can't discontinue a provisioning instance", "statusCode": 403}], 1),
        (None, 0),
    ],
)
def test_failures_within_a_success_are_found(rows: Any, failed: int) -> None:
    """What is gone already is none of them, although its code is the same."""
    assert failed == len(refusals(rows))
    for status in (202, 207):
        found = meaning(Reply(method="PUT", path="/instances", status=status, text=json.dumps(rows)))
        assert (found is not None) is bool(failed)


@pytest.mark.parametrize(
    ("status", "message", "gone"),
    [
        (400, "Invalid instance id", True),
        (400, "Invalid volume id", True),
        (400, "Invalid ssh-key ID", True),
        (400, "Invalid script ID", True),
        (403, "Can't discontinue a discontinued instance", True),
        (403, "Can't discontinue a provisioning instance", False),
        (400, "Invalid instance type", False),
        (500, "Invalid instance id", False),
    ],
)
def test_what_is_gone_is_recognised_by_the_message(status: int, message: str, gone: bool) -> None:
    """The status is that of a request that is wrong, and the code that of one that is forbidden."""
    error = ProvisionError("Verda refused.", provider="verda")
    error.reply = reply(status, "invalid_request", message)  # type: ignore[attr-defined]
    assert gone is is_gone(error)
