"""A task learns who the members are when it looks at them, and not before."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import pytest

from skyward.errors import TransportError
from skyward.link.frames import Parser
from skyward.link.roster import Row, decode_question, encode_peers
from skyward.model.instances.instance import InstanceInfo, PeerInfo
from skyward.model.instances.lazy_peers import Peers
from skyward.node.worker.peer_lookup import REMEMBERED, Directory, peer

ROWS = (Row("10.0.0.1", None), Row("10.0.0.2", "1.2.3.4"))
PEERS = (PeerInfo(node=0, private_ip="10.0.0.1"), PeerInfo(node=1, private_ip="10.0.0.2", public_ip="1.2.3.4"))


def _body(frame: bytes) -> bytes:
    return Parser().feed(frame)[0].body


def _directory(answer: Callable[[Directory, int], None]) -> tuple[Directory, list[int]]:
    asked: list[int] = []

    def send(frame: bytes) -> None:
        asked.append(decode_question(_body(frame)))
        answer(directory, asked[-1])

    directory = Directory(send)
    return directory, asked


def _at_once(directory: Directory, version: int) -> None:
    directory.received(_body(encode_peers(version, ROWS)))


def test_nothing_is_asked_until_peers_are_looked_at() -> None:
    """How many they are is known before, and they are asked for once."""
    directory, asked = _directory(_at_once)
    info = InstanceInfo.from_dict({"node": 1, "peers": directory.peers({"version": 7, "total_nodes": 2})})
    assert (2, []) == (len(info.peers), asked)
    assert info.peers == PEERS
    assert (PEERS[1], PEERS[:1]) == (info.peers[1], info.peers[:1])
    assert [7] == asked


def test_peers_of_a_small_pool_are_told_with_the_version() -> None:
    """Nothing is asked then."""
    directory, asked = _directory(_at_once)
    peers = directory.peers({"version": 7, "total_nodes": 2, "peers": [["10.0.0.1", None], ["10.0.0.2", "1.2.3.4"]]})
    assert (PEERS, []) == (tuple(peers), asked)


def test_tasks_that_ask_at_once_share_a_question() -> None:
    """Each waits in its own thread for the one answer."""
    directory, asked = _directory(lambda directory, version: None)
    found: list[tuple[Row, ...]] = []
    threads = [threading.Thread(target=lambda: found.append(directory.find(7))) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not asked:
        threads[0].join(0.001)
    _at_once(directory, 7)
    for thread in threads:
        thread.join(10)
    assert ([ROWS] * 3, [7]) == (found, asked)


def test_a_client_that_is_away_is_not_waited_for_for_ever() -> None:
    """Another task may ask again; an answer that comes too late is harmless."""
    directory, asked = _directory(lambda directory, version: None)
    for _ in range(2):
        with pytest.raises(TransportError, match=r"did not send within 0\.01 s which nodes the pool has"):
            directory.find(7, 0.01)
    _at_once(directory, 7)
    assert [7, 7] == asked


def test_an_agent_that_cannot_be_asked_is_asked_again() -> None:
    """No task waits for an answer to a question that was never sent."""

    def fail(directory: Directory, version: int) -> None:
        raise OSError("the agent is gone")

    directory, asked = _directory(fail)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            directory.find(7)
    assert [7, 7] == asked


def test_few_versions_are_remembered() -> None:
    """The oldest is asked for anew."""
    directory, asked = _directory(_at_once)
    for version in range(1, REMEMBERED + 2):
        directory.find(version)
    directory.find(2)
    directory.find(1)
    assert [*range(1, REMEMBERED + 2), 1] == asked


def test_peers_are_what_the_tuple_of_them_is() -> None:
    """Equal, hashed, shown, joined and pickled alike, and as JSON."""
    peers = Peers(2, lambda: ROWS, peer)
    assert (peers, hash(peers), repr(peers)) == (PEERS, hash(PEERS), repr(PEERS))
    assert peers == Peers(2, lambda: ROWS, peer)
    assert peers != Peers(1, lambda: ROWS[:1], peer)
    assert peers != list(PEERS)
    assert PEERS + PEERS == peers + PEERS
    info = InstanceInfo(peers=peers, total_nodes=2)
    assert InstanceInfo(peers=PEERS, total_nodes=2) == info
    assert (tuple, info) == (type(pickle.loads(pickle.dumps(info)).peers), pickle.loads(pickle.dumps(info)))
    assert info == InstanceInfo.from_dict(info.to_dict())
