"""The places of a pool are a mapping that never changes, and each change of it is cheap."""

from __future__ import annotations

from hypothesis import given, strategies as st

from skyward.plan.pool.places import NodeState, NodeStatus, Places

_changes = st.lists(st.tuples(st.integers(0, 100), st.none() | st.sampled_from(NodeStatus)), max_size=60)


@given(_changes)
def test_it_holds_what_a_dict_would(changes: list[tuple[int, NodeStatus | None]]) -> None:
    """In the order of places, with counts and gaps; and what was made before stays as it was."""
    places, model = Places(), dict[int, NodeState]()
    for place, status in changes:
        before, was = places, dict(model)
        if status is None:
            places = places.without(place)
            model.pop(place, None)
        else:
            places = places.with_node(place, NodeState(status))
            model[place] = NodeState(status)
        assert was == dict(before)
    assert (model, sorted(model), len(model)) == (dict(places), list(places), len(places))
    assert Places(model) == places
    for status in NodeStatus:
        assert sum(node.status is status for node in model.values()) == places.count(status)
    free = [place for place in range(200) if place not in model]
    assert (free[:5], [place for place in free if place < 40][:5]) == (list(places.free(5)), list(places.free(5, 40)))


def test_a_change_shares_all_but_a_block() -> None:
    """A thousand nodes are not copied for what happens to one."""
    before = Places({place: NodeState(NodeStatus.READY) for place in range(1000)})
    after = before.with_node(500, NodeState(NodeStatus.LEAVING)).without(501)
    copied = [number for number in before._blocks if before._blocks[number] is not after._blocks[number]]
    assert [500 // 32] == copied
    assert (999, 998, 1) == (len(after), after.count(NodeStatus.READY), after.count(NodeStatus.LEAVING))


def test_ready_nodes_are_listed_once_for_each_value() -> None:
    """Those that ask on and on whether a node is the head get the same list."""
    places = Places({1: NodeState(NodeStatus.READY), 0: NodeState(NodeStatus.STARTING), 2: NodeState(NodeStatus.READY)})
    assert (1, 2) == places.ready
    assert places.ready is places.ready
