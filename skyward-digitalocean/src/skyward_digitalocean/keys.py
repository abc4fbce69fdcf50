"""The pool's key among the account's, where it stays only as long as the pool: keys are the whole team's."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Collection
from typing import Any

from skyward.provider import Registered, SkywardError, key_material, registered, text
from skyward_digitalocean.account import Account
from skyward_digitalocean.tagging import pool_tag

__all__ = ["close_keys", "fingerprint", "forget_tags", "key_name", "open_key"]

_log = logging.getLogger("skyward.provider.digitalocean")


def fingerprint(public: str) -> str:
    """
    Return the fingerprint by which DigitalOcean knows a key.

    Args:
        public: The key, as a line of a file of authorized keys.

    >>> fingerprint("ssh-ed25519 AAAA me@here")
    '69:3e:9a:f8:4d:3d:fc:c7:1e:64:0e:00:5b:dc:5e:2e'
    """
    digest = hashlib.md5(base64.b64decode(public.split()[1]), usedforsecurity=False).hexdigest()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))


def key_name(pool_id: str) -> str:
    """Return the name that a pool's key has in the account."""
    return pool_tag(pool_id)


async def open_key(account: Account, pool_id: str, public: str) -> Registered:
    """
    Register the pool's key with the account, unless it is there, and return it by its fingerprint.

    Args:
        account: Whose.
        pool_id: The pool.
        public: The key.

    Raises:
        SkywardError: If it is refused.
    """
    name, known = key_name(pool_id), fingerprint(public)

    async def create() -> str:
        await account.api.post("/v2/account/keys", json={"name": name, "public_key": public}, once=False)
        return known

    async def find() -> Registered | None:
        rows = await account.pages("/v2/account/keys", "ssh_keys", lane="keys")
        there = [row for row in rows if key_material(row.get("public_key")) == key_material(public)]
        return Registered(id=known, own=there[0].get("name") == name) if there else None

    # The same key again is refused, so that a second call does no harm.
    return await registered(create, find, unique=True)


async def close_keys(account: Account, pools: Collection[str]) -> None:
    """
    Remove the keys that pools left in the account.

    Args:
        account: Whose.
        pools: The pools, which have no droplet any more.

    Raises:
        SkywardError: If it is refused.
    """
    names = {key_name(pool) for pool in pools}
    for row in await account.pages("/v2/account/keys", "ssh_keys", lane="keys"):
        if row.get("name") in names:
            await account.api.delete(f"/v2/account/keys/{text(row, 'fingerprint')}", also=(404,))


async def forget_tags(account: Account, pools: Collection[str]) -> None:
    """
    Remove the tags of pools that nothing bears any more; where the token may not, they stay, and cost nothing.

    Args:
        account: Whose.
        pools: The pools.
    """
    fronts = tuple(pool_tag(pool) for pool in pools)
    try:
        for row in await account.pages("/v2/tags", "tags"):
            name = str(row.get("name", ""))
            if any(name == front or name.startswith(f"{front}:") for front in fronts) and _is_free(row):
                await account.api.delete(f"/v2/tags/{name}", also=(404,))
    except SkywardError as error:
        _log.info("tags.kept provider=digitalocean reason=%s", error)


def _is_free(row: Any) -> bool:
    resources = row.get("resources")
    return isinstance(resources, dict) and resources.get("count") == 0
