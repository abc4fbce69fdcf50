"""The network volumes of the account, which several pods may have at a time, in their own data centre."""

from __future__ import annotations

from typing import Any

from skyward.provider import Volume, chosen, listed, text
from skyward_runpod.account import Account

__all__ = ["PATH", "find_volume"]

PATH = "/v2/network-volumes"


async def find_volume(account: Account, wanted: str) -> Volume:
    """
    Look for a network volume.

    Args:
        account: Who asks.
        wanted: Its id or name.

    Raises:
        ConfigError: If there is none, or there are several of the name.
        SkywardError: If RunPod does not answer.
    """
    known: list[Volume] = await account.api.get(
        PATH, read=lambda answer: [_volume(row) for row in listed(answer, "networkVolumes")]
    )
    return chosen(known, wanted, "RunPod")


def _volume(row: Any) -> Volume:
    return Volume(id=text(row, "id"), name=text(row, "name"), place=text(row, "dataCenter"), shared=True)
