"""Which nodes are suspected and lost, on a clock that the test turns."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from skyward.plan.pool.suspicion import Judgement, Sign, Suspicion, Verdict

SUSPECT, LOSE, LEASE = 15.0, 60.0, 600.0


class Watched:
    """
    Some nodes, and what was decided about them at which second.

    Args:
        nodes: Their names.
        patience: Seconds that they may be cut off.
    """

    def __init__(self, nodes: Iterable[str], patience: float = LEASE) -> None:
        self.suspicion = Suspicion[str](SUSPECT, LOSE)
        self.counts = dict.fromkeys(nodes, 0)
        self.silent: set[str] = set()
        self.now = 0.0
        self.found: list[tuple[float, str, Verdict]] = []
        self._patience = patience
        self.look()

    def look(self) -> list[Judgement[str]]:
        """Look once."""
        found = self.suspicion.look(
            {name: Sign(count, self._patience) for name, count in self.counts.items()}, self.now
        )
        self.found += [(self.now, node, verdict) for node, verdict, _ in found]
        return found

    def run(self, seconds: float) -> None:
        """Look as often as is to be looked, while nodes send their heartbeats."""
        until = self.now + seconds
        while self.now < until:
            self.now += self.suspicion.interval
            for name in self.counts:
                self.counts[name] += name not in self.silent
            self.look()

    def of(self, name: str) -> dict[Verdict, float]:
        """Return what was decided about a node, and when the first time."""
        return {verdict: when for when, node, verdict in reversed(self.found) if node == name}


def test_nodes_that_are_heard_are_never_suspected() -> None:
    """However long."""
    watched = Watched("ab")
    watched.run(3600.0)
    assert [] == watched.found


def test_a_silent_node_is_suspected_within_its_time() -> None:
    """And its calls are begun elsewhere at once, because the other one is heard."""
    watched = Watched("ab")
    watched.run(100.0)
    watched.silent = {"b"}
    since = watched.now
    watched.run(LOSE - 2.5)
    assert {Verdict.SUSPECT, Verdict.EVACUATE} == set(watched.of("b"))
    assert watched.of("b")[Verdict.SUSPECT] - since <= 20.0
    assert watched.of("b")[Verdict.EVACUATE] == watched.of("b")[Verdict.SUSPECT]


def test_a_silent_node_is_lost_while_others_are_heard() -> None:
    """Once, and long before its lease ends."""
    watched = Watched("ab")
    watched.run(100.0)
    watched.silent = {"b"}
    since = watched.now
    watched.run(LEASE)
    assert LOSE <= watched.of("b")[Verdict.LOSE] - since <= LOSE + 2 * watched.suspicion.interval
    assert 1 == sum(verdict is Verdict.LOSE for _, _, verdict in watched.found)


def test_a_node_that_is_heard_again_is_trusted() -> None:
    """And judged as if nothing had been."""
    watched = Watched("ab")
    for _ in range(2):
        watched.silent = {"b"}
        watched.run(30.0)
        watched.silent = set()
        watched.run(30.0)
    verdicts = [verdict for _, node, verdict in watched.found if node == "b"]
    assert [Verdict.SUSPECT, Verdict.EVACUATE, Verdict.TRUST] * 2 == verdicts


def test_where_all_are_silent_the_clients_line_may_be_to_blame() -> None:
    """No call is begun elsewhere, and no node lost, before the lease ends."""
    watched = Watched("ab")
    watched.run(100.0)
    watched.silent = {"a", "b"}
    watched.run(LEASE - 10.0)
    assert {Verdict.SUSPECT} == {verdict for _, _, verdict in watched.found}
    watched.run(20.0)
    assert {"a", "b"} == {node for _, node, verdict in watched.found if verdict is Verdict.LOSE}


def test_nodes_that_come_back_one_after_the_other_keep_their_calls() -> None:
    """After the client's line was broken, the second one has some seconds more."""
    watched = Watched("ab")
    watched.silent = {"a", "b"}
    watched.run(120.0)
    watched.silent = {"b"}
    watched.run(2.5)
    watched.silent = set()
    watched.run(60.0)
    assert {Verdict.SUSPECT, Verdict.TRUST} == {verdict for _, _, verdict in watched.found}


def test_a_machine_that_answers_proves_the_line() -> None:
    """Its agent alone is silent: it is lost as if others were heard."""
    watched = Watched("a")
    watched.silent = {"a"}
    watched.run(20.0)
    watched.suspicion.answers("a")
    watched.run(LOSE)
    assert LOSE <= watched.of("a")[Verdict.LOSE] <= LOSE + 5.0


def test_a_line_that_cannot_break_needs_no_proof() -> None:
    """As that to a node on this machine."""
    watched = Watched("a", patience=0.0)
    watched.silent = {"a"}
    watched.run(LOSE + 5.0)
    assert watched.of("a")[Verdict.LOSE] <= LOSE + 5.0


@pytest.mark.parametrize("gap", [10.0, 60.0, 8 * 3600.0])
def test_a_gap_of_the_client_counts_as_one_look(gap: float) -> None:
    """A blocked loop, or a laptop that slept, heard nothing because it did not listen."""
    watched = Watched("ab")
    watched.run(100.0)
    watched.now += gap
    assert [] == watched.look()
    # The nodes have no time to say more than that they are there.
    watched.run(100.0)
    assert [] == watched.found


def test_nodes_that_are_left_out_are_forgotten() -> None:
    """A place that is taken by another node begins with no silence."""
    watched = Watched("ab")
    watched.silent = {"b"}
    watched.run(30.0)
    del watched.counts["b"]
    watched.run(5.0)
    assert not watched.suspicion.suspected("b")


EVENTS = st.lists(
    st.tuples(st.sampled_from(["silence", "heard", "wait", "gap", "leave"]), st.integers(0, 3)), max_size=60
)


@given(EVENTS)
def test_whatever_happens_verdicts_make_sense(events: list[tuple[str, int]]) -> None:
    """Each node is suspected, then evacuated or lost, then trusted at most once; and never before its time."""
    watched = Watched("abcd")
    heard = dict.fromkeys(watched.counts, 0.0)
    states: dict[str, set[Verdict]] = {name: set() for name in watched.counts}
    for what, number in events:
        name = "abcd"[number]
        match what:
            case "silence":
                watched.silent.add(name)
            case "heard":
                watched.silent.discard(name)
            case "leave" if len(watched.counts) > 1:
                watched.counts.pop(name, None)
                states[name] = set()
            case "gap":
                watched.now += 1000.0
        watched.now += watched.suspicion.interval * (1 + number)
        for one in watched.counts:
            if one not in watched.silent:
                watched.counts[one] += 1
                heard[one] = watched.now
        for node, verdict, silent in watched.look():
            if verdict is Verdict.TRUST:
                assert Verdict.SUSPECT in states[node]
                states[node] = set()
                continue
            assert verdict not in states[node]
            assert SUSPECT <= silent <= watched.now - heard[node] + 1e-6
            if verdict is Verdict.LOSE:
                assert silent >= LOSE
            if verdict is not Verdict.SUSPECT:
                assert Verdict.SUSPECT in states[node]
            states[node].add(verdict)


def test_a_thousand_nodes_cost_next_to_nothing() -> None:
    """A look takes some tenths of a millisecond, every 2.5 s: far below a thousandth of a core."""
    watched = Watched(map(str, range(1000)))
    began = time.thread_time()
    watched.run(250.0)
    each = (time.thread_time() - began) / 100
    assert each / watched.suspicion.interval < 0.005
