"""Members are numbered without gaps, and each change has a version."""

from __future__ import annotations

from hypothesis import given, strategies as st

from skyward.engine.membership import Membership, address
from skyward.model.instance import InstanceInfo


def _info(node: int, **facts: object) -> InstanceInfo:
    return InstanceInfo(node=node, private_ip=f"10.0.0.{node}", **facts)  # type: ignore[arg-type]


def _membership(*nodes: int) -> Membership:
    membership = Membership("job")
    membership.change({node: _info(node, head_port=7000 + node) for node in nodes})
    return membership


@given(st.sets(st.integers(0, 20), min_size=1))
def test_numbers_have_no_gaps(nodes: set[int]) -> None:
    """Whatever places are empty, in the order of the places; the lowest is the head."""
    membership = _membership(*nodes)
    told = {node: membership.of(node)[1] for node in nodes}
    assert list(range(len(nodes))) == [told[node]["node"] for node in sorted(nodes)]
    head = min(nodes)
    assert {(f"10.0.0.{head}", 7000 + head)} == {(facts["head_addr"], facts["head_port"]) for facts in told.values()}
    assert {len(nodes)} == {facts["total_nodes"] for facts in told.values()}


def test_peers_are_told_in_the_order_of_their_numbers() -> None:
    """All nodes hear the same ones."""
    membership = _membership(5, 2)
    assert [("10.0.0.2", 0), ("10.0.0.5", 1)] == [
        (peer["private_ip"], peer["node"]) for peer in membership.of(2)[1]["peers"]
    ]
    assert membership.of(2)[1]["peers"] == membership.of(5)[1]["peers"]


def test_each_change_has_a_version() -> None:
    """What changes nothing has none."""
    membership = _membership(0, 1)
    before, _ = membership.of(0)
    membership.change(dict(membership.infos))
    membership.drop(7)
    assert (before, before) == (membership.of(0)[0], membership.of(1)[0])
    membership.drop(0)
    assert (before + 1, 0) == (membership.of(1)[0], membership.of(1)[1]["node"])
    assert before + 1 == membership.of(1)[1]["version"]


def test_a_node_that_changed_is_a_change() -> None:
    """Another machine in the same place has another address."""
    membership = _membership(0)
    before, _ = membership.of(0)
    membership.change({0: _info(0, head_port=9000)})
    assert (before + 1, 9000) == (membership.of(0)[0], membership.of(0)[1]["head_port"])


def test_a_node_that_is_not_ready_is_told_its_place() -> None:
    """As one whose workers only start."""
    assert 3 == _membership(0).of(3)[1]["node"]
    assert 1 == Membership("job").of(0)[1]["total_nodes"]


def test_the_private_address_goes_first() -> None:
    """Nodes on one machine have none."""
    assert "10.0.0.1" == address(InstanceInfo(private_ip="10.0.0.1", ip="1.2.3.4"))
    assert "1.2.3.4" == address(InstanceInfo(ip="1.2.3.4"))
    assert "127.0.0.1" == address(InstanceInfo())


def test_nodes_that_work_by_themselves_know_no_secret() -> None:
    """So that their ranks cannot meet; those of one node can, and all else is as ever."""
    apart = Membership("job", joined=False)
    apart.change({0: _info(0)})
    assert apart.of(0)[1]["secret"]
    apart.change({0: _info(0), 1: _info(1)})
    told = apart.of(1)[1]
    assert ("", 1, 2) == (told["secret"], told["node"], told["total_nodes"])
    assert _membership(0, 1).of(0)[1]["secret"]
