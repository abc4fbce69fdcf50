"""The account at Vast.ai: its machines, listed in one call for all pools, and terminated together."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    CloudDisk,
    HostPins,
    Instance,
    Inventory,
    Joined,
    KeyAccount,
    SkywardError,
    by_cursor,
    by_id,
    chosen,
    end_for_good,
    listed,
    of_pool,
    optional,
    text,
    whole,
)
from skyward_vastai.instances import described, owner
from skyward_vastai.keys import DueKeys
from skyward_vastai.service import KEY, SERVICE

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["Account"]

_log = logging.getLogger("skyward.provider.vastai")

LISTS_HOLD = 1.0
"""Seconds for which all pools of the account take one list."""

VOLUMES_HOLD = 30.0
"""Seconds for which a list of volumes is kept: Vast.ai wants 5.5 between two, and one never leaves its machine."""

TOGETHER = 0.05
"""Seconds that an end waits for others, which one call can order as well."""


class Account(KeyAccount):
    """
    Use an account.

    Args:
        key: Its key; None for the one that Vast's own tools would use.
    """

    def __init__(self, key: str | None) -> None:
        super().__init__(SERVICE, KEY, key)
        self.inventory = Inventory({"machines": self._rows}, identity=self.identity, hold=LISTS_HOLD)
        self.keys = DueKeys(self)
        self._pins = HostPins("vastai")
        self._ends = Joined(self._end, TOGETHER)
        self._ordered: set[str] = set()
        self._refused: dict[str, SkywardError] = {}

    async def instances(self, cluster: Cluster) -> list[Instance]:
        """
        List the pool's machines by label; one just rented that lists do not have yet is pending.

        Args:
            cluster: The pool.

        Raises:
            SkywardError: If there is no list: that is not an empty one.
        """
        rows = await self.inventory.rows(pool_id=cluster.pool_id)
        await self.keys.attach_next(cluster.pool_id)
        return [
            described(row, cluster.key, known_hosts=self._pins.file(name), on_demand=self.inventory.rate(name))
            for name, row in of_pool(rows, owner, cluster.pool_id).items()
        ]

    async def owned(self) -> list[Instance]:
        """
        List every machine of ours that the account has.

        Raises:
            SkywardError: If there is no list.
        """
        return [described(row) for row in (await self.inventory.rows()).values() if owner(row) is not None]

    async def terminate(self, ids: Sequence[str]) -> None:
        """
        Destroy machines, and return when no list has them any more.

        Args:
            ids: Which; one that is gone already is no error.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await end_for_good(
            ids,
            end=self._why,
            left=self._ends.order,
            provider="vastai",
            hint="Type: vastai destroy instance {ids}, one by one, or use Vast.ai's console.",
        )
        self.keys.forget(ids)
        for each in ids:
            self._ordered.discard(each)
            self._refused.pop(each, None)

    async def volume(self, wanted: str) -> CloudDisk:
        """
        Look for a local volume; its place is the number of its machine, whose listings alone can have it.

        Args:
            wanted: Its id, or its name.

        Raises:
            ConfigError: If there is none, or there are several of the name.
            SkywardError: If Vast.ai does not answer.
        """

        async def ask() -> list[CloudDisk]:
            found: list[CloudDisk] = await self.api.get(
                "/api/v0/volumes",
                params={"owner": "me", "type": "local_volume"},
                lane="volumes",
                read=lambda answer: [_volume(row) for row in listed(answer, "volumes")],
            )
            return found

        return chosen(await self.inventory.shared().ask("volumes", VOLUMES_HOLD, ask), wanted, "Vast.ai")

    async def _rows(self) -> dict[str, Mapping[str, Any]]:
        rows = await self.api.pages(
            "/api/v1/instances/",
            lambda answer: listed(answer, "instances"),
            by_cursor("next_token", "after_token"),
            params={"limit": 25},
            lane="list",
        )
        return self.api.understood(rows, lambda rows: by_id(rows, whole, provider="vastai"), "GET /api/v1/instances/")

    async def _why(self, instance: str) -> None:
        """Raise why the last order to end a machine was refused; the order itself goes out with those of others."""
        error = self._refused.pop(instance, None)
        if error is not None:
            raise error

    async def _end(self, ids: Sequence[str]) -> set[str]:
        """Order the end of machines together, and return what is left."""
        again = [each for each in ids if each in self._ordered]
        new = [each for each in ids if each not in self._ordered]
        self._ordered.update(ids)
        if len(new) > 1:
            await self._order("/api/v0/instances/", new, {"instance_ids": [int(each) for each in new]})
        else:
            again += new
        # What did not go with the others goes by itself.
        for each in again:
            await self._order(f"/api/v0/instances/{each}/", [each], {}, also=(404,))
        there = await self.inventory.rows(within=0.0)
        # A list that lags does not have all, so that a refusal counts as well.
        return {each for each in ids if each in there or each in self._refused}

    async def _order(self, path: str, ids: Sequence[str], json: Any, also: Sequence[int] = ()) -> None:
        """Send an order; whether it was carried out is for the list to say."""
        try:
            await self.api.delete(path, json=json, lane="destroy", subject=", ".join(ids), also=also)
        except SkywardError as error:
            _log.info("destroy.refused ids=%s: %s", ",".join(ids), error)
            self._refused.update(dict.fromkeys(ids, error))
        else:
            self.inventory.forget(ids)


def _volume(row: Any) -> CloudDisk:
    number = whole(row, "id")
    # What the user calls it is its label.
    name = optional(row, "label", text) or optional(row, "name", text) or f"V.{number}"
    # Every container on its machine may have it.
    return CloudDisk(id=str(number), name=name, place=str(whole(row, "machine_id")), shared=True)
