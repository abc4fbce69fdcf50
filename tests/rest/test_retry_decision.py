"""What becomes of a call, by its reply."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import CapacityError, CredentialsError, ProvisionError
from skyward.rest.reply import Meaning, Reply
from skyward.rest.retry_decision import AT_MOST, LONGEST_PAUSE, UNANSWERED, Accept, Refuse, RetryLater, decide, held

NOW = 1_800_000_000.0


def reply(status: int, *, once: bool = False, sent: bool = True, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(method="POST", path="/", status=status, once=once, sent=sent, headers=named)


def verdict(given: Reply, attempt: int = 1, meaning: Meaning | None = None) -> str:
    return type(decide(given, attempt, meaning, dice=0.5, now=NOW)).__name__


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (reply(200), "Accept"),
        (reply(202, once=True), "Accept"),
        (reply(204), "Accept"),
        (reply(301), "Refuse"),
        (reply(400), "Refuse"),
        (reply(401), "Refuse"),
        (reply(404), "Refuse"),
        (reply(408), "RetryLater"),
        (reply(408, once=True), "Refuse"),
        (reply(422), "Refuse"),
        (reply(429), "RetryLater"),
        (reply(429, once=True), "RetryLater"),
        (reply(500), "RetryLater"),
        (reply(500, once=True), "Refuse"),
        (reply(501), "Refuse"),
        (reply(503, once=True), "Refuse"),
        (reply(0), "RetryLater"),
        (reply(0, once=True), "Refuse"),
        (reply(0, once=True, sent=False), "RetryLater"),
    ],
    ids=str,
)
def test_the_status_decides(given: Reply, expected: str) -> None:
    """What may have made something is not sent twice; what never got there, or was told to wait, is."""
    assert expected == verdict(given)


@pytest.mark.parametrize(("status", "most"), [(429, AT_MOST), (503, AT_MOST), (0, UNANSWERED)])
def test_retries_are_bounded(status: int, most: int) -> None:
    """A call is sent so often and not once more."""
    assert ["RetryLater"] * (most - 1) + ["Refuse"] == [
        verdict(reply(status), attempt) for attempt in range(1, most + 1)
    ]


def test_the_provider_has_the_last_word() -> None:
    """A 503 may mean that there is no capacity, a 403 that it is too early, a 200 that nothing was done."""
    none_left = Meaning(kind=CapacityError, again=False)
    assert Refuse(none_left) == decide(reply(503), 1, none_left, dice=0.0, now=NOW)
    assert "RetryLater" == verdict(reply(403), meaning=Meaning(kind=ProvisionError, again=True))
    assert "Refuse" == verdict(reply(200), meaning=Meaning(kind=ProvisionError))


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_said_to_be_one(status: int) -> None:
    """Nothing else is tried with it."""
    decision = decide(reply(status), 1, None, dice=0.0, now=NOW)
    assert isinstance(decision, Refuse)
    assert CredentialsError is decision.meaning.kind


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry_after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({"retry_after": "nan"}, None),
        ({"ratelimit_reset": "1800000012"}, 12.0),
        ({"ratelimit_remaining": "0", "ratelimit_reset": "5"}, 5.0),
        ({"ratelimit_remaining": "4900", "ratelimit_reset": "1800000050"}, None),
        ({"x_ratelimit_reset": "1800000009"}, 9.0),
        ({"retry_after": "2", "ratelimit_reset": "1800000050"}, 2.0),
        ({"ratelimit": '"minute";r=0;t=12, "hour";r=2800;t=1812'}, 12.0),
        ({"ratelimit": '"minute";r=50;t=12, "hour";r=1;t=30'}, 15.0),
        ({"ratelimit": '"minute";r=50;t=12, "hour";r=2800;t=1812'}, None),
        ({"ratelimit": "what; is=this"}, None),
        ({"ratelimit": '"minute";r=0;t=12', "retry_after": "3"}, 3.0),
    ],
    ids=str,
)
def test_what_the_api_asks_for_is_read(headers: dict[str, str], expected: float | None) -> None:
    """`Retry-After` in both of its forms, and the reset of an allowance that is used up."""
    assert expected == held(reply(429, **headers), NOW)


def test_an_allowance_that_is_not_used_up_holds_nobody() -> None:
    """The reset alone says nothing about a success."""
    assert held(reply(200, ratelimit_remaining="17", ratelimit_reset="1800000050"), NOW) is None
    assert 50.0 == held(reply(200, ratelimit_remaining="0", ratelimit_reset="1800000050"), NOW)


def test_one_who_was_told_to_wait_waits_at_least_so_long() -> None:
    """The pause is never shorter than asked for, and not the same for all."""
    pauses: list[Any] = [decide(reply(429, retry_after="9"), 1, None, dice=dice, now=NOW) for dice in (0.0, 1.0)]
    assert [9.0, 9.9] == [pause.after for pause in pauses]


def test_nobody_waits_for_a_quota_that_is_back_tomorrow() -> None:
    """Who asks for more than a minute is not waited for, and the error comes at once."""
    assert "Refuse" == verdict(reply(429, retry_after=str(LONGEST_PAUSE + 10)))


def test_pauses_grow_and_are_jittered() -> None:
    """Each pause lies between half and all of twice the one before."""
    longest: list[Any] = [decide(reply(503), attempt, None, dice=1.0, now=NOW) for attempt in range(1, AT_MOST)]
    least: list[Any] = [decide(reply(503), attempt, None, dice=0.0, now=NOW) for attempt in range(1, AT_MOST)]
    assert [0.5, 1.0, 2.0, 4.0, 8.0] == [pause.after for pause in longest]
    assert [0.25, 0.5, 1.0, 2.0, 4.0] == [pause.after for pause in least]
    assert all(isinstance(pause, RetryLater) for pause in longest)
    assert Accept() == decide(reply(200), AT_MOST, None, dice=0.0, now=NOW)
