"""A large buffer goes over the client's line about once, and from node to node else, whatever happens to nodes."""

from __future__ import annotations

from math import ceil, log

import pytest
from hypothesis import given, settings, strategies as st

from skyward.model.instances.transfer import TransferOutcome
from skyward.plan.pool.spreading import (
    CLIENT,
    FAN_OUT,
    MOST_IN_VAIN,
    MOST_TRIES,
    Copies,
    Fetch,
    Move,
    Roads,
    Upload,
    decide,
)
from tests.simulated.swarm import CONNECT, STALL, Swarm, World

ALL = frozenset(range(10))
OPEN = Roads()


@pytest.mark.parametrize(
    ("copies", "roads", "able", "busy", "moves"),
    [
        pytest.param(Copies(), OPEN, ALL, {}, (), id="nothing is needed"),
        pytest.param(Copies(wanted=(1, 2)), OPEN, ALL, {}, (Upload(1),), id="the first one is sent it"),
        pytest.param(Copies(arriving={0: CLIENT}, wanted=(1,)), OPEN, ALL, {}, (), id="others wait for it"),
        pytest.param(
            Copies(arriving={0: CLIENT}, stalled=frozenset({0}), wanted=(1, 2)),
            OPEN,
            ALL,
            {},
            (Upload(1),),
            id="not for one that gets nothing",
        ),
        pytest.param(
            Copies(holders=(0, 3), wanted=(1, 2)), OPEN, ALL, {}, (Fetch(1, 0), Fetch(2, 3)), id="least busy first"
        ),
        pytest.param(Copies(holders=(0,), wanted=(1,)), OPEN, ALL, {0: FAN_OUT}, (), id="a busy one is waited for"),
        pytest.param(Copies(holders=(0,), wanted=(1,)), OPEN, set(), {}, (), id="a port is waited for"),
        pytest.param(
            Copies(holders=(0,), wanted=(1,)),
            Roads(barred=frozenset({(0, 1)})),
            ALL,
            {},
            (Upload(1),),
            id="not reached",
        ),
        pytest.param(
            Copies(holders=(0, 3), wanted=(1,)), Roads(false=frozenset({0})), ALL, {}, (Fetch(1, 3),), id="a liar"
        ),
        pytest.param(
            Copies(holders=(0,), wanted=(1, 2)),
            OPEN.without(1),
            ALL,
            {},
            (Upload(1), Fetch(2, 0)),
            id="one that takes no part",
        ),
        pytest.param(
            Copies(holders=(0,), wanted=(1,)), OPEN.without(0), ALL, {}, (Upload(1),), id="a source that takes no part"
        ),
        pytest.param(
            Copies(holders=(0,), wanted=(1,), tries={1: MOST_TRIES}), OPEN, ALL, {}, (Upload(1),), id="tried enough"
        ),
        pytest.param(Copies(holders=(0,), wanted=(1,)), Roads(shut=True), ALL, {}, (Upload(1),), id="nothing goes on"),
        pytest.param(
            Copies(holders=(0,), wanted=(1, 2)),
            Roads(unreached=MOST_IN_VAIN),
            ALL,
            {},
            (Upload(1), Upload(2)),
            id="none reaches another",
        ),
        pytest.param(
            Copies(holders=(0,), wanted=(1,)),
            Roads(unreached=MOST_IN_VAIN, proved=True),
            ALL,
            {},
            (Fetch(1, 0),),
            id="some reach others",
        ),
    ],
)
def test_what_is_done_for_those_that_need_it(
    copies: Copies, roads: Roads, able: set[int], busy: dict[int, int], moves: tuple[Move, ...]
) -> None:
    """One rule for each."""
    after, found = decide(copies, roads, able, busy)
    assert moves == found
    assert {move.node for move in found}.isdisjoint(after.wanted)
    assert {move.node for move in found} <= set(after.arriving)


_NODES = st.lists(st.integers(0, 9), unique=True, max_size=10)


@given(_NODES, _NODES, _NODES, st.frozensets(st.integers(0, 9)), st.dictionaries(st.integers(0, 9), st.integers(0, 2)))
def test_what_does_not_work_elsewhere_changes_nothing(
    holders: list[int], arriving: list[int], wanted: list[int], able: frozenset[int], busy: dict[int, int]
) -> None:
    """Where every node of these reaches every other, the short way gives what looking at each one gives."""
    there = {*holders, *arriving}
    copies = Copies(
        holders=tuple(holders),
        arriving={node: CLIENT for node in arriving if node not in holders},
        wanted=tuple(node for node in wanted if node not in there),
        stalled=frozenset(arriving[:2]),
    )
    elsewhere = Roads(barred=frozenset({(98, 99)}))
    assert decide(copies, OPEN, able, busy) == decide(copies, elsewhere, able, busy)


def test_a_node_serves_no_more_than_a_few_at_a_time() -> None:
    """The others wait, in the order in which they asked."""
    copies, moves = decide(Copies(holders=(0,), wanted=(1, 2, 3, 4)), OPEN, ALL, {})
    assert tuple(Fetch(node, 0) for node in range(1, 1 + FAN_OUT)) == moves
    assert tuple(range(1 + FAN_OUT, 5)) == copies.wanted


def test_what_failed_is_tried_elsewhere_and_then_sent() -> None:
    """Each failure costs one try; the client is the last."""
    copies, roads = Copies(holders=(0, 3, 4, 5), wanted=(1,)), OPEN
    sources = []
    for _ in range(MOST_TRIES):
        copies, [move] = decide(copies, roads, ALL, {})
        assert isinstance(move, Fetch)
        sources.append(move.source)
        roads = roads.learn(move.source, 1, TransferOutcome.STALLED)
        copies = copies.failed(1, TransferOutcome.STALLED)
    assert len(set(sources)) == MOST_TRIES
    assert (Upload(1),) == decide(copies, roads, ALL, {})[1]


@pytest.mark.parametrize(
    ("outcome", "again", "others", "itself"),
    [
        (TransferOutcome.OK, True, True, True),
        (TransferOutcome.UNREACHED, False, True, True),
        (TransferOutcome.STALLED, False, True, True),
        (TransferOutcome.GONE, True, True, True),
        (TransferOutcome.WRONG, False, False, True),
        (TransferOutcome.UNABLE, False, True, False),
    ],
)
def test_what_is_learnt_of_a_transfer(outcome: TransferOutcome, again: bool, others: bool, itself: bool) -> None:
    """Whether the pair is tried again, whether other nodes go to the source, and whether the node goes to others."""
    roads = OPEN.learn(0, 1, outcome)
    assert (again, others, itself) == (roads.lead(0, 1), roads.lead(0, 2), roads.lead(2, 1))


def test_a_source_that_fails_for_many_is_none_any_more() -> None:
    """Unless it works in between."""
    roads = OPEN
    for node in range(1, MOST_IN_VAIN):
        roads = roads.learn(0, node, TransferOutcome.STALLED)
    assert roads.serves(0)
    assert roads.learn(0, 8, TransferOutcome.OK).learn(0, 9, TransferOutcome.STALLED).serves(0)
    assert not roads.learn(0, 9, TransferOutcome.STALLED).serves(0)


def test_a_holder_that_has_it_no_more_is_forgotten() -> None:
    """Also where another node finds that out."""
    copies, _ = decide(Copies(holders=(0, 3), wanted=(1,)), OPEN, ALL, {})
    assert (3,) == copies.failed(1, TransferOutcome.GONE).holders
    assert (0, 3) == copies.failed(1, TransferOutcome.STALLED).holders
    assert copies == copies.failed(2, TransferOutcome.STALLED)


@pytest.mark.parametrize("nodes", [2, 8, 32, 100])
def test_the_clients_line_carries_it_once(nodes: int) -> None:
    """And the copies grow geometrically: by 1.7 in the time of one transfer at least, and some seconds of talk."""
    world = World(nodes=nodes)
    swarm = Swarm(world).run()
    assert world.size == pytest.approx(swarm.sent[CLIENT], abs=nodes)
    transfer = world.size / world.network
    rounds = 2 * ceil(log(nodes, 1 + FAN_OUT))
    assert swarm.makespan < world.size / world.line + (rounds + 1) * (transfer + 4 * world.delay)


def test_calls_that_come_one_after_the_other_share_it_too() -> None:
    """Those that ask while it is on its way to another node wait for that."""
    world = World(nodes=8, asks={node: 5.0 * node for node in range(8)})
    assert {0: 1} == +Swarm(world).run().uploads


def test_where_none_reaches_another_little_is_lost() -> None:
    """A few connections are tried; from then on the client sends it as before."""
    world = World(nodes=8, walls=lambda source, node: True)
    shared, apart = Swarm(world).run(), Swarm(world, apart=True).run()
    assert shared.sent[CLIENT] == pytest.approx(apart.sent[CLIENT], abs=8)
    assert shared.makespan < apart.makespan + 3 * CONNECT


def test_where_two_halves_do_not_reach_each_other_one_is_served_as_before_at_most() -> None:
    """The half of the first holder gets it once."""
    world = World(nodes=8, walls=lambda source, node: source % 2 != node % 2)
    swarm = Swarm(world).run()
    assert [1, 0, 0, 0] == [swarm.uploads[node] for node in (0, 2, 4, 6)]


_SOME = st.frozensets(st.integers(0, 11), max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    nodes=st.integers(1, 12),
    dies=st.dictionaries(st.integers(0, 11), st.floats(0, 200), max_size=4),
    stalls=_SOME,
    lies=_SOME,
    walls=st.frozensets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    asks=st.dictionaries(st.integers(0, 11), st.floats(0, 200), max_size=12),
)
def test_every_living_node_gets_it(
    nodes: int,
    dies: dict[int, float],
    stalls: frozenset[int],
    lies: frozenset[int],
    walls: frozenset[tuple[int, int]],
    asks: dict[int, float],
) -> None:
    """Sent by the client once at most, in bounded time, whatever dies, stalls, lies or is walled in."""
    world = World(
        nodes=nodes,
        dies={node: when for node, when in dies.items() if node < nodes},
        stalls=stalls,
        lies=lies,
        walls=lambda source, node: (source, node) in walls,
        asks={node: when for node, when in asks.items() if node < nodes},
    )
    swarm = Swarm(world).run()
    assert max(swarm.uploads.values(), default=0) <= 1
    # All by the client, all tries of each node one after the other, and all that a busy source may be waited for.
    longest = nodes * (world.size / world.line + MOST_TRIES * (STALL + CONNECT) + 12 * world.size / world.network)
    assert swarm.now < 400 + longest


def test_many_nodes_that_die_while_they_serve_cost_little() -> None:
    """What died with its only holder is sent anew, and what was on its way to one that died."""
    world = World(nodes=32, dies={node: 108.0 + node for node in range(16)})
    swarm = Swarm(world).run()
    assert swarm.sent[CLIENT] <= 2.2 * world.size
