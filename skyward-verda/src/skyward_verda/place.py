"""What a pool's machines in a location share: an SSH key and a startup script, found again by their names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import Any

from attrs import frozen

from skyward.provider import Api, Misread, ProvisionError, Registered, SkywardError, registered, text
from skyward_verda.failure import read_list, unless_gone

__all__ = ["Place", "close_pools", "identifier", "open_place"]

_KEY_PATHS = ("/sshkeys", "/ssh-keys")
"""Both are in official clients, and either may go one day."""

_SCRIPTS = "/scripts"
_ID = re.compile(r"[\w.~-]+")


@frozen(kw_only=True)
class Place:
    """
    Say where a pool's machines are put, and what they get there.

    Args:
        region: The location.
        key: Id of the SSH key.
        script: Id of the startup script.
    """

    region: str
    key: str
    script: str


def identifier(answer: str) -> str:
    """
    Read the id of what was made, which is bare text, or JSON.

    Args:
        answer: The body.

    Raises:
        Misread: If there is no id in it.

    >>> identifier("ab-12"), identifier('"ab-12"'), identifier('{"id": "ab-12"}')
    ('ab-12', 'ab-12', 'ab-12')
    """
    import json

    try:
        value = json.loads(answer)
    except ValueError:
        value = answer
    if isinstance(value, dict):
        value = text(value, "id")
    # An id may look like a number.
    found = value if isinstance(value, str) else answer
    if not _ID.fullmatch(found.strip()):
        raise Misread("it is no id")
    return found.strip()


async def open_place(api: Api, pool_id: str, region: str, login: str, script: str) -> Place:
    """
    Register what the pool's machines in a location need; what an earlier call left is used again.

    Args:
        api: The API.
        pool_id: The pool.
        region: The location.
        login: The public key that is let in.
        script: What a machine runs at its first boot.

    Raises:
        SkywardError: If it cannot be; then nothing of it is left.
    """
    name = _name(pool_id, region)
    try:
        path, _ = await _keys(api)
        key = await _ensured(api, path, name, {"key": login})
        made = await _ensured(api, _SCRIPTS, name, {"script": script})
    except BaseException as error:
        # What fails to open is never asked to release.
        clean = asyncio.ensure_future(close_pools(api, [pool_id], region))
        try:
            await asyncio.shield(clean)
        except SkywardError as other:
            error.add_note(f"Its key or script may be left in the account: {other}")
        raise
    return Place(region=region, key=key, script=made)


async def close_pools(api: Api, pools: Collection[str], region: str | None = None) -> None:
    """
    Remove what pools registered; what is gone already is no error.

    Args:
        api: The API.
        pools: The pools.
        region: Only what they have in this location; None for all.

    Raises:
        SkywardError: If something may be left; it costs nothing.
    """
    keys, there = await _keys(api)
    for path, rows in ((keys, there), (_SCRIPTS, await _rows(api, _SCRIPTS))):
        for row in rows:
            name = str(row.get("name", ""))
            if any(name == _name(pool, region) if region else name.startswith(_name(pool, "")) for pool in pools):
                await unless_gone(api.delete(f"{path}/{text(row, 'id')}", also=(404,), plain=True))


def _name(pool_id: str, region: str) -> str:
    return f"skyward-{pool_id}-{region.lower()}"


async def _rows(api: Api, path: str) -> list[Any]:
    return [*await api.get(path, read=read_list)]


async def _keys(api: Api) -> tuple[str, list[Any]]:
    """Return the path of SSH keys, whichever spelling there is, and what is there."""
    for path in _KEY_PATHS:
        rows = await api.get(path, also=(404,), read=read_list)
        if rows is not None:
            return path, rows
    raise ProvisionError(
        f"Verda knows neither {' nor '.join(_KEY_PATHS)}.",
        provider="verda",
        hint="It may have changed its API: look for a newer release of Skyward.",
    )


async def _ensured(api: Api, path: str, name: str, body: dict[str, Any]) -> str:
    """Return the id of what has a name; it is made where it is not there."""

    async def create() -> str:
        return await api.post(path, json={"name": name, **body}, plain=True, read=identifier)

    async def find() -> Registered | None:
        return next((Registered(id=text(row, "id")) for row in await _rows(api, path) if row.get("name") == name), None)

    return (await registered(create, find, unique=False)).id
