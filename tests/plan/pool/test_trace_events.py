"""An attempt of a call becomes lines of the Trace Event Format: its way at the client, its run at the node."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from skyward.model.events.follower import CallTimes
from skyward.plan.pool.trace_events import call_lines, instant, process, thread

CALL = CallTimes(
    task=7,
    attempt=7,
    function="train",
    carried="",
    broadcast=0,
    node=1,
    lane=0,
    slot=2,
    submitted=100.0,
    queued=100.001,
    sent=100.002,
    placed=100.003,
    began=100.004,
    ended=101.004,
    answered=101.005,
    failure=None,
    stopped=False,
    again=False,
)


def parsed(call: CallTimes) -> list[dict[str, Any]]:
    """Return the lines of a call, read again."""
    return cast("list[dict[str, Any]]", json.loads(f"[{call_lines(call, 100.0)}]"))


def test_the_run_is_a_slice_of_the_slot_on_its_node() -> None:
    """A node is a process, a slot a thread of it, and times are in microseconds."""
    (run,) = [line for line in parsed(CALL) if line["ph"] == "X"]
    assert ("train", 3, 1002) == (run["name"], run["pid"], run["tid"])
    assert pytest.approx((4000, 1_000_000), abs=1) == (run["ts"], run["dur"])
    assert {"task": 7, "attempt": 7, "outcome": "ok"} == run["args"]


def test_the_way_of_a_call_is_nested_at_the_client() -> None:
    """Its phases follow one another without a gap, inside the call."""
    way = [line for line in parsed(CALL) if line["ph"] in "be"]
    assert "train submit queue transfer run result".split() == [line["name"] for line in way if line["ph"] == "b"]
    begins, ends = ({line["name"]: line["ts"] for line in way if line["ph"] == sign} for sign in "be")
    assert (begins["train"], ends["train"]) == (begins["submit"], ends["result"])
    parts = ["submit", "queue", "transfer", "run", "result"]
    assert [ends[part] for part in parts[:-1]] == [begins[part] for part in parts[1:]]
    assert {"7"} == {line["id"] for line in way}


def test_a_failure_is_marked_with_its_reason() -> None:
    """By colour, by category, and by a mark of its own at its end."""
    made = parsed(CALL._replace(failure='ValueError: "no"'))
    (run,) = [line for line in made if line["ph"] == "X"]
    assert ("failed", "terrible", 'ValueError: "no"') == (run["cat"], run["cname"], run["args"]["failure"])
    (mark,) = [line for line in made if line["ph"] == "i"]
    assert ("failed", run["ts"] + run["dur"], run["tid"]) == (mark["name"], mark["ts"], mark["tid"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"failure": "it failed", "again": True}, "retried"),
        ({"failure": "cancelled", "stopped": True}, "cancelled"),
        ({"failure": "it failed"}, "failed"),
    ],
)
def test_what_became_of_an_attempt_is_one_word(changes: dict[str, Any], expected: str) -> None:
    """What was cancelled or tried again did not fail."""
    assert expected == parsed(CALL._replace(**changes))[0]["args"]["outcome"]


def test_a_call_that_never_began_has_no_slice() -> None:
    """It waited in the queue until it ended."""
    call = CALL._replace(sent=None, placed=None, began=None, ended=None, node=None, failure="cancelled", stopped=True)
    made = parsed(call)
    assert [] == [line for line in made if line["ph"] == "X"]
    assert ["train", "submit", "queue"] == [line["name"] for line in made if line["ph"] == "b"]


def test_names_are_quoted() -> None:
    """Whatever a function or a machine is called."""
    lines = [*process(3, 'node "1"'), *thread(3, 1, "a\\b"), instant(3, 1, 'x"', 2.0, 1.0, "why\n")]
    assert ['node "1"', 3, "a\\b", 1] == [next(iter(json.loads(line)["args"].values())) for line in lines[:4]]
    assert {"reason": "why\n"} == json.loads(lines[4])["args"]
