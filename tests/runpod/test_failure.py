"""Each answer of RunPod means one of our errors, and only the words of a 400 tell a lack of machines."""

from __future__ import annotations

import json

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, QuotaError, SkywardError
from skyward.rest import Reply
from skyward_runpod.failure import PODS, meaning

FULL = "There are no longer any instances available with the requested specifications. Please refresh and try again."


def reply(method: str, path: str, status: int, detail: str = "told so", **more: object) -> Reply:
    """Make an answer in RunPod's own form."""
    return Reply(method=method, path=path, status=status, text=json.dumps({"title": "T", "detail": detail, **more}))


@pytest.mark.parametrize(
    ("status", "detail", "kind"),
    [
        (400, FULL, CapacityError),
        (400, "GPU type is unavailable", CapacityError),
        (400, "a rule that nobody here knows", CapacityError),
        (400, "You have reached your spend limit of $80/hour", QuotaError),
        (401, "missing bearer token", CredentialsError),
        (402, "insufficient balance", CredentialsError),
        (403, "access denied", CapacityError),
        (404, "template not found", ConfigError),
        (422, "Request validation failed.", ConfigError),
    ],
)
def test_what_a_launch_is_refused_with_means_one_error(status: int, detail: str, kind: type[SkywardError]) -> None:
    """No refusal of a launch leaves core in doubt whether a pod was rented."""
    found = meaning(reply("POST", PODS, status, detail))
    assert found is not None
    assert kind is found.kind
    assert found.hint


@pytest.mark.parametrize("status", [200, 201, 204, 404, 409, 429, 500, 503])
def test_what_the_status_says_is_left_to_it(status: int) -> None:
    """Too many calls and the service's own trouble are tried again as everywhere."""
    assert meaning(reply("DELETE", f"{PODS}/x", status)) is None


def test_a_key_that_may_not_look_is_said_to_be_one() -> None:
    """Outside a launch, a refusal is about the key and not about a kind of machine."""
    found = meaning(reply("GET", PODS, 403, "access denied"))
    assert found is not None
    assert CredentialsError is found.kind
