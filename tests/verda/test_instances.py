"""Machines are known by their names and tags, and every word for a state is known."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies

from skyward.model.instances.machine import InstanceState
from skyward.model.instances.tags import Tags
from skyward.rest import Misread
from skyward_verda.instances import described, hostname, pool_of, read_rows, state, tags_of, to_tags

TAGS = Tags(
    pool_id="3fa9",
    pool_name="my pool",
    node=7,
    owner="me@here",
    client="c1",
    token="ab12ab12ab12ab12",
    expires_at=1800000000.0,
)


def row(**changes: Any) -> dict[str, Any]:
    """Return a machine as it is listed."""
    found = {
        "id": "i-1",
        "hostname": hostname(TAGS),
        "instance_type": "1V100.6V",
        "status": "running",
        "ip": "10.0.0.1",
        "location": "FIN-01",
        "is_spot": True,
        "price_per_hour": 0.1,
        "created_at": "2026-11-21T10:00:00.000Z",
        "tags": [{"id": "t", **tag} for tag in to_tags(TAGS)],
    }
    return {**found, **changes}


def test_what_is_written_is_read() -> None:
    """Name and tags together hold all."""
    assert tags_of(row()) == TAGS


def test_a_name_alone_tells_pool_request_and_node() -> None:
    """For accounts that have no tags."""
    for tags in (None, [], [{"key": "mine", "value": "1"}]):
        assert Tags(pool_id="3fa9", token="ab12ab12ab12ab12", node=7) == tags_of(row(tags=tags))


def test_tags_have_no_character_that_may_be_refused() -> None:
    """Keys in small letters and hyphens, and within Verda's lengths."""
    long = Tags(pool_id="1", pool_name="x" * 500, owner="o" * 500, node=1)
    for tag in to_tags(long):
        assert re.fullmatch("[a-z-]{1,63}", tag["key"])
        assert len(tag["value"]) <= 127
    assert len(to_tags(TAGS)) <= 10


@given(strategies.text(min_size=1), strategies.integers(0, 99999))
def test_every_request_has_a_name_that_verda_takes(token: str, node: int) -> None:
    """Letters, digits and hyphens, sixty at most, and the same for the same."""
    name = hostname(Tags(pool_id="0123456789ab", token=token, node=node))
    assert re.fullmatch("[A-Za-z0-9-]{1,60}", name)
    assert name == hostname(Tags(pool_id="0123456789ab", token=token, node=node))
    assert "0123456789ab" == pool_of(name)


@pytest.mark.parametrize(
    "name", ["", "web-1", "skyward", "skyward-a", "skyward-a-b", "skyward-a-b-c", "xskyward-a-b-1", "skyward-web-old-1"]
)
def test_names_of_others_are_none_of_ours(name: str) -> None:
    """However much they look so."""
    assert pool_of(name) is None
    assert tags_of({"hostname": name}) is None


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        *((each, "PENDING") for each in ("new", "ordered", "provisioning", "validating", "pending")),
        ("running", "RUNNING"),
        *((each, "ENDING") for each in ("offline", "error", "no_capacity", "deleting", "unknown", "hibernating")),
        *((each, "ENDED") for each in ("discontinued", "notfound", "deleted")),
    ],
)
def test_every_state_that_is_told_is_known(word: str, meaning: str) -> None:
    """What is billed still is never called ended."""
    assert InstanceState[meaning] is state({"id": "i-1", "status": word})


@pytest.mark.parametrize("word", ["sleeping", "", None, 3])
def test_a_new_state_counts_as_ending(word: Any) -> None:
    """It might be billed; and no other machine is hidden by it."""
    assert InstanceState.ENDING is state({"id": "i-1", "status": word})


def test_others_machines_are_not_looked_at() -> None:
    """Whatever they are like; ours have to say which they are."""
    assert {} == read_rows([{"hostname": "web-1"}])
    assert {"i-1": row(is_spot="maybe")} == read_rows([row(is_spot="maybe"), row(id=None), 3])
    with pytest.raises(Misread):
        read_rows([row(id=None)])
    for answer in (None, {}, "x", [3]):
        with pytest.raises(Misread):
            read_rows(answer)


def test_a_machine_is_described() -> None:
    """A time that cannot be read is none."""
    found = described(row())
    assert ("i-1", 7, "FIN-01", True, 0.1, "10.0.0.1") == (
        found.id,
        found.node,
        found.region,
        found.spot,
        found.hourly_rate,
        found.ip,
    )
    assert 1795255200.0 == found.launched_at
    assert described(row(created_at="yesterday")).launched_at is None


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("no_capacity", "its status is no_capacity"),
        ("offline", "its status is offline"),
        ("rebalancing", "its status is rebalancing"),
        ("running", None),
        ("deleting", None),
        ("discontinued", None),
    ],
)
def test_the_reason_of_an_end_is_the_word_for_it(status: str, reason: str | None) -> None:
    """A machine that was deleted, or that runs, needs none."""
    assert reason == described(row(status=status)).reason
