"""The spans of a call are made of its times, and their ids of what it carries."""

from __future__ import annotations

from skyward_otel.spans import spans_of
from skyward_otel.trace_text import CallSpan, read, span_of_rank, span_of_run, written
from tests.plan.pool.test_trace_events import CALL

CARRIED = CallSpan(trace=0xABC, span=0x11, flags=1, parent=0x22, state="")


def test_a_call_is_a_span_and_its_phases_are_in_it() -> None:
    """The run is of the node, all others of the client."""
    made = spans_of(CALL, CARRIED, "train", CALL.submitted, phases=True)
    assert ["submit", "queue", "transfer", "result", "run train", "train"] == [span.name for span in made]
    assert [None, None, None, None, 1, None] == [span.node for span in made]
    call = made[-1]
    assert (0x11, 0x22, "client", CALL.submitted, CALL.answered) == (
        call.span,
        call.parent,
        call.kind,
        call.start,
        call.end,
    )
    assert {0x11} == {span.parent for span in made[:-1]}
    assert 6 == len({span.span for span in made})
    assert all(span.start <= span.end for span in made)


def test_without_phases_there_are_two() -> None:
    """The call, and its run."""
    assert ["run train", "train"] == [
        span.name for span in spans_of(CALL, CARRIED, "train", CALL.submitted, phases=False)
    ]


def test_both_ends_derive_the_same_ids() -> None:
    """The node knows what was carried and which attempt it is."""
    (run,) = [span for span in spans_of(CALL, CARRIED, "train", 100.0, phases=False) if span.kind == "server"]
    there = read(written(CARRIED))
    assert there is not None
    assert run.span == span_of_run(span_of_rank(there, CALL.task, 0), CALL.attempt)


def test_ranks_of_a_broadcast_have_spans_of_their_own() -> None:
    """They carry one text, and derive their spans from their numbers."""
    made = [
        spans_of(CALL._replace(task=task, attempt=task, broadcast=5), CARRIED, "train", 100.0, phases=True)
        for task in (7, 8)
    ]
    assert 12 == len({span.span for spans in made for span in spans})
    assert [0x22, 0x22] == [spans[-1].parent for spans in made]


def test_an_attempt_that_is_repeated_ends_no_call() -> None:
    """The call's span is that of all attempts, from the first one's submission."""
    first = spans_of(CALL._replace(again=True, failure="lost"), CARRIED, "train", 100.0, phases=True)
    last = spans_of(CALL._replace(attempt=7 | 1 << 48), CARRIED, "train", 50.0, phases=True)
    assert "train" not in [span.name for span in first]
    assert ("train", 50.0, None) == (last[-1].name, last[-1].start, last[-1].failure)
    assert (1, 2) == (first[0].attributes["skyward.attempt"], last[0].attributes["skyward.attempt"])
    assert not {span.span for span in first} & {span.span for span in last}


def test_a_failure_is_of_the_run_and_of_the_call() -> None:
    """What was cancelled did not fail."""
    failed = spans_of(CALL._replace(failure="it failed"), CARRIED, "train", 100.0, phases=True)
    assert ["it failed", "it failed"] == [span.failure for span in failed if span.failure]
    stopped = spans_of(CALL._replace(failure="cancelled", stopped=True), CARRIED, "train", 100.0, phases=True)
    assert [] == [span for span in stopped if span.failure]
    assert "cancelled" == stopped[-1].attributes["skyward.outcome"]


def test_a_call_that_never_began_has_no_run() -> None:
    """It has what it went through."""
    call = CALL._replace(sent=None, placed=None, began=None, ended=None, node=None, failure="cancelled", stopped=True)
    assert ["submit", "queue", "train"] == [span.name for span in spans_of(call, CARRIED, "train", 100.0, phases=True)]
