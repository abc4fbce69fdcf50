"""The members of the pool at a moment, as `instance_info` reports them."""

from __future__ import annotations

import secrets
from bisect import bisect_left, insort
from collections import Counter, OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skyward.errors import ProtocolError
from skyward.link.roster import Row, decode_question, difference, encode_change
from skyward.model.instances.instance import InstanceInfo

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell

TOLD_AT_ONCE: Final = 32
"""Nodes of a pool that sends its members with each version; a larger one does when a task asks for them."""

REMEMBERED: Final = 4096
"""Changes that can be undone, to send the members of an earlier version."""

_ANSWERS: Final = 16


def address(info: InstanceInfo) -> str:
    """Return where a node is reached by the others."""
    return info.private_ip or info.ip or "127.0.0.1"


class _Undo(NamedTuple):
    """What has to be done to members to have those of the version before."""

    place: int
    row: Row | None


class Membership:
    """
    Number the changes of a pool's ready nodes, and render each for a node.

    Nodes are numbered without gaps, so that ranks are dense also while a lost node is being replaced.
    A change costs the same however many nodes there are, and a version is a few hundred bytes for each node.

    Args:
        job: Identity of this use of the pool.
        joined: Whether ranks of several nodes may meet; only False forbids it.
        after: The version that nodes know from an earlier client.
    """

    def __init__(self, job: str, *, joined: bool | None = None, after: int = 0) -> None:
        self._job = job
        self._joined = joined
        # The ranks authenticate to each other with it; other users of their machines do not have it.
        self._secret = secrets.token_hex(32)
        self.version = after
        self._infos: dict[int, InstanceInfo] = {}
        self._rows: dict[int, Row] = {}
        self._order: list[int] = []
        # By how many each of them has: a sum of fractions that is corrected on and on drifts.
        self._accelerators: Counter[float] = Counter()
        self._undo: deque[_Undo] = deque(maxlen=REMEMBERED)
        self._sent: dict[int, tuple[int, dict[str, Any]]] = {}
        self._answers: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._infos)

    def join(self, node: int, info: InstanceInfo) -> None:
        """Record that a node is ready, or is another one than before; harmless if nothing changed."""
        if self._infos.get(node) != info:
            self._set(node, info)

    def drop(self, node: int) -> None:
        """Record that a node is not ready any more; harmless for one that was not."""
        if node in self._infos:
            self._set(node, None)

    def of(self, node: int) -> tuple[int, dict[str, Any]]:
        """Return the version, and what a node is to know of it."""
        known = self._sent.get(node)
        if known is None or known[0] != self.version:
            known = self._sent[node] = self.version, self._render(node)
        return known

    def since(self, base: int, version: int) -> bytes:
        """
        Return the frame with the members of a version for a node that knows those of another.

        Args:
            base: The version that the node knows; 0 for none.
            version: The version that it asks for; of one that is too long ago, it gets the oldest that is remembered.
        """
        if self.version - base > len(self._undo):
            base = 0
        key = base, version
        frame = self._answers.get(key)
        if frame is None:
            before = self._rows_of(base) if base else {}
            frame = self._answers[key] = encode_change(version, base, difference(before, self._rows_of(version)))
            # Many nodes ask the same at about the same time.
            while len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return frame

    def answer(self, shell: NodeShell, question: bytes) -> None:
        """
        Send a node the members of a version.

        Args:
            shell: The node.
            question: The body of the frame that it asks with.

        Raises:
            ProtocolError: If there has been no such version, or it asks on and on.
        """
        version = decode_question(question)
        if version > self.version:
            raise ProtocolError(f"A node asked for version {version} of the members; there are {self.version}.")
        if shell.link is not None:
            shell.link.send_peers(version, self.since)

    def _rows_of(self, version: int) -> dict[int, Row]:
        rows = dict(self._rows)
        for undo, _ in zip(reversed(self._undo), range(self.version - version), strict=False):
            if undo.row is None:
                del rows[undo.place]
            else:
                rows[undo.place] = undo.row
        return rows

    def _set(self, node: int, info: InstanceInfo | None) -> None:
        before = self._infos.pop(node, None)
        row = self._rows.pop(node, None)
        self._undo.append(_Undo(node, row))
        self.version += 1
        if before is not None:
            self._accelerators[before.accelerators] -= 1
        if info is not None:
            self._infos[node], self._rows[node] = info, Row(info.private_ip or "127.0.0.1", info.ip)
            self._accelerators[info.accelerators] += 1
            if before is None:
                insort(self._order, node)
        else:
            del self._order[bisect_left(self._order, node)]
            self._sent.pop(node, None)

    def _render(self, node: int) -> dict[str, Any]:
        order = self._order
        head = self._infos[order[0]] if order else InstanceInfo()
        facts: dict[str, Any] = {
            "version": self.version,
            "node": bisect_left(order, node) if node in self._infos else node,
            "total_nodes": len(order) or 1,
            "total_accelerators": sum(each * count for each, count in self._accelerators.items()),
            "head_addr": address(head),
            "head_port": head.head_port,
            "job_id": self._job,
            "secret": "" if self._joined is False and len(order) > 1 else self._secret,
        }
        if len(order) <= TOLD_AT_ONCE:
            facts["peers"] = [self._rows[place] for place in order]
        return facts
