"""Who belongs to the pool at a moment, as `instance_info` tells it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from skyward.model.instance import InstanceInfo


def address(info: InstanceInfo) -> str:
    """Return where a node is reached by the others."""
    return info.private_ip or info.ip or "127.0.0.1"


class Membership:
    """
    Number the changes of a pool's ready nodes, and render each for a node.

    Nodes are numbered without gaps, so that ranks are dense also while a lost node is being replaced.

    Args:
        job: Identity of this use of the pool.
        joined: Whether ranks of several nodes may meet; only False forbids it.
    """

    def __init__(self, job: str, *, joined: bool | None = None) -> None:
        self._job = job
        self._joined = joined
        # The ranks authenticate to each other with it; other users of their machines do not have it.
        self._secret = secrets.token_hex(32)
        self._version = 0
        self._rendered: dict[int, dict[str, Any]] = {}
        self.infos: dict[int, InstanceInfo] = {}

    def change(self, infos: Mapping[int, InstanceInfo]) -> None:
        """Take the nodes that are ready now."""
        if dict(infos) != self.infos:
            self.infos = dict(sorted(infos.items()))
            self._version += 1
            self._rendered.clear()

    def drop(self, node: int) -> None:
        """Take note that a node is not ready any more."""
        self.change({index: info for index, info in self.infos.items() if index != node})

    def of(self, node: int) -> tuple[int, dict[str, Any]]:
        """Give the version, and what a node is to know of it."""
        known = self._rendered.get(node)
        if known is None:
            known = self._rendered[node] = self._render(node)
        return self._version, known

    def _render(self, node: int) -> dict[str, Any]:
        order = list(self.infos)
        infos = list(self.infos.values())
        head = infos[0] if infos else InstanceInfo()
        return {
            "version": self._version,
            "node": order.index(node) if node in order else node,
            "total_nodes": len(infos) or 1,
            "total_accelerators": sum(info.accelerators for info in infos),
            "head_addr": address(head),
            "head_port": head.head_port,
            "job_id": self._job,
            "secret": "" if self._joined is False and len(infos) > 1 else self._secret,
            "peers": [
                {"node": place, "private_ip": info.private_ip or "127.0.0.1", "public_ip": info.ip}
                for place, info in enumerate(infos)
            ],
        }
