"""What an agent knows of the pool's members: versions, and their rows where a worker asked for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, decode_json, encode
from skyward.link.roster import Row, applied, decode_change, decode_question, encode_peers, encode_question

if TYPE_CHECKING:
    from skyward.node.agent.child_process import ChildProcess

MEMBERSHIPS: Final = 64
"""How many versions of the membership a node remembers."""

ROSTERS: Final = 16
"""Of how many versions an agent keeps the members; they share the rows that are the same."""


class Members:
    """
    Forward what the client sends of the members, and workers' questions to it.

    Args:
        ask: Sends a frame to the client.
    """

    def __init__(self, ask: Callable[[bytes], None]) -> None:
        self._ask = ask
        self._versions: dict[int, bytes] = {}
        self._rosters: dict[int, dict[int, Row]] = {}
        self._waiting: dict[int, list[ChildProcess]] = {}

    def versions(self) -> list[bytes]:
        """Return the frames that a process which starts has to know."""
        return list(self._versions.values())

    def received(self, body: bytes) -> bytes:
        """
        Take a MEMBERS frame of the client's, and return the one that workers have to know.

        Raises:
            ProtocolError: If it names no version.
        """
        version = decode_json(body).get("version")
        if not isinstance(version, int):
            raise ProtocolError("A MEMBERS frame has no version.")
        frame = self._versions[version] = encode(Kind.MEMBERS, body)
        while len(self._versions) > MEMBERSHIPS:
            del self._versions[next(iter(self._versions))]
        return frame

    def asked(self, process: ChildProcess, body: bytes) -> None:
        """
        Answer a worker that asks for the members, now or when the client has answered.

        Raises:
            ProtocolError: If it asks for no version.
        """
        version = decode_question(body)
        if (rows := self._rosters.get(version)) is not None:
            process.control.send(encode_peers(version, rows.values()))
            return
        waiting = self._waiting.setdefault(version, [])
        if not waiting:
            self._ask(encode_question(version))
        waiting.append(process)

    def answered(self, body: bytes) -> None:
        """
        Take a PEERS frame of the client's.

        Raises:
            ProtocolError: If it is malformed, or the difference from a version that is not known here.
        """
        version, base, change = decode_change(body)
        if base and base not in self._rosters:
            raise ProtocolError(f"A PEERS frame is based on version {base}, which is not known here.")
        rows = applied(self._rosters[base] if base else {}, change)
        # The client takes what it sent last for known, so the oldest goes first.
        self._rosters.pop(version, None)
        self._rosters[version] = rows
        while len(self._rosters) > ROSTERS:
            del self._rosters[next(iter(self._rosters))]
        for process in self._waiting.pop(version, ()):
            process.control.send(encode_peers(version, rows.values()))
