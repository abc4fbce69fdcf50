"""The local volumes of the account: each is on one machine, whose listings are the only ones that can have it."""

from __future__ import annotations

from typing import Any

from skyward.provider import Volume, chosen, listed, optional, text, whole
from skyward_vastai.account import Account

__all__ = ["PATH", "find_volume"]

PATH = "/api/v0/volumes"

HELD = 30.0
"""Seconds for which a list is kept: Vast.ai wants 5.5 between two, and a volume never leaves its machine."""


async def find_volume(account: Account, wanted: str) -> Volume:
    """
    Look for a volume; its place is the number of its machine.

    Args:
        account: Who asks.
        wanted: Its id, with or without the `V.` before it, or its name.

    Raises:
        ConfigError: If there is none, or there are several of the name.
        SkywardError: If Vast.ai does not answer.
    """

    async def ask() -> list[Volume]:
        found: list[Volume] = await account.api.get(
            PATH,
            params={"owner": "me", "type": "local_volume"},
            lane="volumes",
            read=lambda answer: [_volume(row) for row in listed(answer, "volumes")],
        )
        return found

    return chosen(await account.shared().ask("volumes", HELD, ask), wanted, "Vast.ai")


def _volume(row: Any) -> Volume:
    number = whole(row, "id")
    # What the user calls it is its label.
    name = optional(row, "label", text) or optional(row, "name", text) or f"V.{number}"
    # Every container on its machine may have it.
    return Volume(id=str(number), name=name, place=str(whole(row, "machine_id")), shared=True)
