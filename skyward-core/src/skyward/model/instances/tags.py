"""
What is written on a machine when it is rented, so that a list shows its owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

__all__ = ["Tags"]

_PREFIX = "skyward:"


@frozen(kw_only=True)
class Tags:
    """
    The owner of a machine, and its expiry.

    Args:
        pool_id: Identity of the use of the pool it was rented for.
        pool_name: What the user calls the pool.
        node: Index of its node; None where the cloud cannot say so for each machine.
        owner: The user that rented it, as `user@host`.
        client: Identity of the client process.
        token: Names the request that rented it.
        expires_at: When its client counts as gone unless it wrote a later time, in seconds since 1970; None never, 0
            where its pool is being ended from outside.

    >>> Tags.from_strings(Tags(pool_id="a1", node=3, expires_at=1800000000.4).to_strings())
    Tags(pool_id='a1', pool_name='', node=3, owner='', client='', token='', expires_at=1800000000.0)
    """

    pool_id: str
    pool_name: str = ""
    node: int | None = None
    owner: str = ""
    client: str = ""
    token: str = ""
    expires_at: float | None = None

    @property
    def called_off(self) -> bool:
        """Return whether its pool is being ended by another program, which its own one is to know."""
        return self.expires_at == 0.0

    def to_strings(self) -> dict[str, str]:
        """Return what is written on the machine, by names that begin with `skyward:`; what is not known is left out."""
        written = {
            "pool": self.pool_id,
            "pool-name": self.pool_name,
            "node": "" if self.node is None else str(self.node),
            "owner": self.owner,
            "client": self.client,
            "token": self.token,
            "expires": "" if self.expires_at is None else str(int(self.expires_at)),
        }
        return {_PREFIX + name: value for name, value in written.items() if value}

    @classmethod
    def from_strings(cls, strings: Mapping[str, str]) -> Tags | None:
        """
        Read what is written on a machine.

        Args:
            strings: All its tags, others' among them.

        Returns:
            The tags; None if the machine is none of ours.

        >>> Tags.from_strings({"Name": "web"}) is None
        True
        """
        ours = {name.removeprefix(_PREFIX): text for name, text in strings.items() if name.startswith(_PREFIX)}
        if not ours.get("pool"):
            return None
        node, expires = ours.get("node", ""), ours.get("expires", "")
        return cls(
            pool_id=ours["pool"],
            pool_name=ours.get("pool-name", ""),
            node=int(node) if _is_number(node) else None,
            owner=ours.get("owner", ""),
            client=ours.get("client", ""),
            token=ours.get("token", ""),
            expires_at=float(expires) if _is_number(expires) else None,
        )


def _is_number(text: str) -> bool:
    """Return whether a tag, which other programs may have rewritten, is a whole number."""
    return text.isascii() and text.isdigit()
