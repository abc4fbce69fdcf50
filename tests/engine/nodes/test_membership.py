"""Members are numbered without gaps, each change has a version, and what is told grows with the nodes and no faster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from skyward.engine.nodes import membership as memberships
from skyward.engine.nodes.membership import TOLD_AT_ONCE, Membership, address
from skyward.errors import ProtocolError
from skyward.link.frames import Parser
from skyward.link.roster import Row, applied, decode_change, encode_question
from skyward.model.instances.instance import InstanceInfo


def _info(node: int, **facts: object) -> InstanceInfo:
    return InstanceInfo(node=node, private_ip=f"10.0.{node >> 8}.{node & 255}", **facts)  # type: ignore[arg-type]


def _membership(*nodes: int) -> Membership:
    membership = Membership("job")
    for node in nodes:
        membership.join(node, _info(node, head_port=7000 + node))
    return membership


def _told(frame: bytes) -> tuple[int, int, Any]:
    [parsed] = Parser().feed(frame)
    return decode_change(parsed.body)


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
    assert [("10.0.0.2", None), ("10.0.0.5", None)] == membership.of(2)[1]["peers"]
    assert membership.of(2)[1]["peers"] == membership.of(5)[1]["peers"]


def test_each_change_has_a_version() -> None:
    """What changes nothing has none."""
    membership = _membership(0, 1)
    before, _ = membership.of(0)
    membership.join(0, _info(0, head_port=7000))
    membership.drop(7)
    assert (before, before) == (membership.of(0)[0], membership.of(1)[0])
    membership.drop(0)
    assert (before + 1, 0) == (membership.of(1)[0], membership.of(1)[1]["node"])
    assert before + 1 == membership.of(1)[1]["version"]


def test_a_node_that_changed_is_a_change() -> None:
    """Another machine in the same place has another address."""
    membership = _membership(0)
    before, _ = membership.of(0)
    membership.join(0, _info(0, head_port=9000))
    assert (before + 1, 9000) == (membership.of(0)[0], membership.of(0)[1]["head_port"])


def test_a_node_that_is_not_ready_is_told_its_place() -> None:
    """As one whose workers only start."""
    assert 3 == _membership(0).of(3)[1]["node"]
    assert 1 == Membership("job").of(0)[1]["total_nodes"]


def test_accelerators_are_those_of_the_nodes_there_are() -> None:
    """Also fractions of them, which come and go without a trace."""
    membership = Membership("job")
    for node in range(30):
        membership.join(node, _info(node, accelerators=0.1))
    for node in range(30):
        membership.join(node, _info(node, accelerators=0.3))
    for node in range(1, 30):
        membership.drop(node)
    assert 0.3 == membership.of(0)[1]["total_accelerators"]


def test_the_private_address_goes_first() -> None:
    """Nodes on one machine have none."""
    assert "10.0.0.1" == address(InstanceInfo(private_ip="10.0.0.1", ip="1.2.3.4"))
    assert "1.2.3.4" == address(InstanceInfo(ip="1.2.3.4"))
    assert "127.0.0.1" == address(InstanceInfo())


def test_nodes_that_work_by_themselves_know_no_secret() -> None:
    """So that their ranks cannot meet; those of one node can, and all else is as ever."""
    apart = Membership("job", joined=False)
    apart.join(0, _info(0))
    assert apart.of(0)[1]["secret"]
    apart.join(1, _info(1))
    told = apart.of(1)[1]
    assert ("", 1, 2) == (told["secret"], told["node"], told["total_nodes"])
    assert _membership(0, 1).of(0)[1]["secret"]


# Who the members were.

_changes = st.lists(st.tuples(st.integers(0, 6), st.none() | st.integers(0, 2)), max_size=40)


@given(_changes, st.data())
def test_any_version_that_was_leads_to_any_other(changes: list[tuple[int, int | None]], data: st.DataObject) -> None:
    """Whatever joined, left and was replaced between them, in either direction."""
    membership = Membership("job")
    versions: list[dict[int, Row]] = [{}]
    for node, machine in changes:
        rows = dict(versions[-1])
        if machine is None:
            membership.drop(node)
            rows.pop(node, None)
        else:
            membership.join(node, InstanceInfo(node=node, private_ip=f"10.0.0.{machine}"))
            rows[node] = Row(f"10.0.0.{machine}", None)
        if membership.of(0)[0] == len(versions):
            versions.append(rows)
    assume(len(versions) > 1)
    base, version = data.draw(st.integers(0, len(versions) - 1)), data.draw(st.integers(1, len(versions) - 1))
    told = _told(membership.since(base, version))
    assert (version, base) == told[:2]
    assert versions[version] == applied(versions[base], told[2])


def test_of_a_version_that_is_too_long_ago_the_oldest_is_told_that_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task that asks after thousands of changes is told of some nodes that it may not have seen."""
    monkeypatch.setattr(memberships, "REMEMBERED", 3)
    membership = _membership(*range(10))
    assert list(range(7)) == [place for place, _ in _told(membership.since(0, 1))[2].here]
    # What the node knows is known here no more, so it is told all.
    assert (10, 0, 10) == (*_told(membership.since(5, 10))[:2], len(_told(membership.since(5, 10))[2].here))


class _Asker:
    """Be a node whose link says what it was answered."""

    def __init__(self) -> None:
        self.link = self
        self.answers: list[bytes] = []

    def send_peers(self, version: int, since: Any) -> None:
        self.answers.append(since(0, version))


def test_a_node_is_told_of_the_version_that_it_asks_for() -> None:
    """And one that asks for a version that never was is refused."""
    membership, node = _membership(0, 1, 2), _Asker()
    body = Parser().feed(encode_question(2))[0].body
    membership.answer(node, body)  # type: ignore[arg-type]
    assert [0, 1] == [place for place, _ in _told(node.answers[0])[2].here]
    with pytest.raises(ProtocolError, match="asked for version 4 of the members; there are 3"):
        membership.answer(node, Parser().feed(encode_question(4))[0].body)  # type: ignore[arg-type]


# What is sent and held.


def _bytes_told(nodes: int) -> int:
    """Have each node of a pool be told who the members are: at its opening, and after a tenth was lost and replaced."""
    membership = _membership(*range(nodes))
    total = sum(len(json.dumps(membership.of(node)[1])) for node in range(nodes))
    for node in range(0, nodes, 10):
        membership.drop(node)
    total += sum(len(json.dumps(membership.of(node)[1])) for node in range(nodes) if node % 10)
    for node in range(0, nodes, 10):
        membership.join(node, _info(node + nodes))
    return total + sum(len(json.dumps(membership.of(node)[1])) for node in range(nodes))


def test_what_nodes_are_told_grows_with_their_number() -> None:
    """Ten times the nodes are told ten times as much; each hears a few hundred bytes, whatever the pool's size."""
    hundred, thousand = _bytes_told(100), _bytes_told(1000)
    assert 9 * hundred < thousand < 11 * hundred
    assert thousand < 1000 * 3 * 400
    assert _bytes_told(TOLD_AT_ONCE) < TOLD_AT_ONCE * 3 * 2048


def test_what_is_held_grows_with_the_nodes() -> None:
    """One row for each, and a small mapping for each that was told; who the members are is kept once."""

    def held(nodes: int) -> int:
        membership = _membership(*range(nodes))
        for node in range(nodes):
            membership.of(node)
        return sum(len(sent) for _, sent in membership._sent.values()) + len(membership._rows) + len(membership._undo)

    assert held(1000) == 10 * held(100)


def test_nodes_that_ask_the_same_share_one_answer() -> None:
    """Those of a broadcast do; after a loss it is a row or two."""
    membership = _membership(*range(1000))
    whole = membership.since(0, 1000)
    assert whole is membership.since(0, 1000)
    membership.drop(500)
    membership.join(500, _info(1500))
    assert len(membership.since(1000, 1002)) < 120 < len(whole) / 100
