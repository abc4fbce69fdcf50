"""How a worker learns the members of a version: at once with a small pool, else when a task asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from skyward.errors import TransportError
from skyward.link.roster import Row, decode_peers, encode_question
from skyward.model.instances.lazy_peers import Peers

if TYPE_CHECKING:
    from skyward.model.instances.instance import PeerInfo

PATIENCE: Final = 120.0
"""Seconds that a task waits for the members; a link that is lost meanwhile may come back."""

REMEMBERED: Final = 4
"""Of how many versions a worker keeps the members, for tasks that begin later."""


def peer(rank: int, private: str, public: str | None) -> PeerInfo:
    """
    Make a member of its addresses.

    >>> peer(1, "10.0.0.2", None).private_ip
    '10.0.0.2'
    """
    # Imported late: a worker has no attrs before a task asks.
    from skyward.model.instances.instance import PeerInfo

    return PeerInfo(node=rank, private_ip=private, public_ip=public)


class _Answer:
    """What is waited for."""

    __slots__ = ("rows", "there")

    def __init__(self) -> None:
        self.there = threading.Event()
        self.rows: tuple[Row, ...] = ()


class Directory:
    """
    Ask the agent for the members of versions; tasks wait for the answers in their own threads.

    Args:
        send: Sends a frame to the agent.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._answers: dict[int, _Answer] = {}

    def peers(self, membership: dict[str, Any]) -> Peers[PeerInfo]:
        """
        Return the members of a version, which are asked for when they are first looked at.

        Args:
            membership: What a MEMBERS frame holds.
        """
        sent: Sequence[tuple[str, str | None]] | None = membership.get("peers")
        if sent is not None:
            return Peers(len(sent), lambda: sent, peer)
        version = membership["version"]
        return Peers(membership.get("total_nodes", 1), lambda: self.find(version), peer)

    def find(self, version: int, patience: float = PATIENCE) -> tuple[Row, ...]:
        """
        Wait for the members of a version.

        Args:
            version: The version.
            patience: Seconds to wait, at most.

        Raises:
            TransportError: If the client does not answer in time.
        """
        answer = self._answer(version)
        if not answer.there.wait(patience):
            self._forget(version)
            raise TransportError(
                f"The client did not send within {patience:g} s which nodes the pool has: it may be away.",
                hint="Look at instance_info().peers early in a task.",
            )
        return answer.rows

    def received(self, body: bytes) -> None:
        """
        Take a PEERS frame of the agent's; harmless if nothing waits for it any more.

        Raises:
            ProtocolError: If it is malformed.
        """
        version, rows = decode_peers(body)
        with self._lock:
            answer = self._answers.pop(version, None)
            if answer is None:
                return
            answer.rows = rows
            answer.there.set()
            # The newest last, and none that a task still waits for is dropped.
            self._answers[version] = answer
            known = [each for each, answer in self._answers.items() if answer.there.is_set()]
            for each in known[:-REMEMBERED]:
                del self._answers[each]

    def _answer(self, version: int) -> _Answer:
        with self._lock:
            if (answer := self._answers.get(version)) is not None:
                return answer
            answer = self._answers[version] = _Answer()
        try:
            self._send(encode_question(version))
        except BaseException:
            self._forget(version)
            raise
        return answer

    def _forget(self, version: int) -> None:
        with self._lock:
            self._answers.pop(version, None)
