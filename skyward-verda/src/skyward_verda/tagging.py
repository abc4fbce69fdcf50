"""A later expiry on machines that bear tags, which can be removed and added, but not changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skyward.provider import SkywardError, reply_of, text, together
from skyward_verda.account import Account
from skyward_verda.failure import unless_gone

__all__ = ["renew"]

_KEY = "skyward-expires"
_CONFLICT = 409


async def renew(account: Account, ids: Sequence[str], expires_at: float) -> None:
    """
    Write a later expiry on machines; one that bears no tags, or is gone already, is no error.

    Args:
        account: Who asks.
        ids: Which.
        expires_at: Seconds since 1970.

    Raises:
        SkywardError: If it could not be written on one.
    """
    tagged = {text(row, "id") for row in await account.rows() if row.get("tags")}
    await together(*(_written(account, each, str(int(expires_at))) for each in ids if each in tagged))


async def _written(account: Account, name: str, value: str) -> None:
    api, path = account.api, f"/instances/{name}/tags"
    wanted: Mapping[str, Any] = {"key": _KEY, "value": value}
    # A machine that has no expiry for a moment is not judged.
    for last in (False, True):
        await unless_gone(api.delete(f"{path}/{_KEY}", also=(404,)))
        try:
            # It makes something, and the key keeps a second one away.
            await unless_gone(api.post(path, json=wanted, also=(404,), once=False, plain=True))
        except SkywardError as error:
            reply = reply_of(error)
            if last or reply is None or reply.status != _CONFLICT:
                raise
        else:
            return
