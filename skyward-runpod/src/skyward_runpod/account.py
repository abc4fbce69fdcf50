"""The account: its key, its calls, and its pods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    CloudDisk,
    Credential,
    Instance,
    InstanceState,
    Inventory,
    KeyAccount,
    Service,
    by_id,
    chosen,
    end_for_good,
    listed,
    of_pool,
    optional,
    text,
)
from skyward_runpod.failure import PODS, meaning
from skyward_runpod.naming import tags_of
from skyward_runpod.pods import described

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["KEY", "VOLUMES", "Account"]

SERVICE = Service(
    provider="runpod",
    title="RunPod",
    base_url="https://api.runpod.io",
    url_variable="RUNPOD_API_BASE_URL",
    meaning=meaning,
)
KEY = Credential(
    provider="runpod",
    title="RunPod",
    parameter="api_key",
    variables=("RUNPOD_API_KEY",),
    hint="Make one in RunPod's console under Settings, API Keys, and set RUNPOD_API_KEY.",
)
VOLUMES = "/v2/network-volumes"

LISTS_HOLD = 1.0
"""Seconds for which pools of one account share a list: 60 calls a minute are allowed at least."""


class Account(KeyAccount):
    """
    Ask RunPod.

    How fast is up to its own headers, which say what is left of an allowance that differs from account to account.

    Args:
        key: The key; None for that of the environment.
    """

    def __init__(self, key: str | None) -> None:
        super().__init__(SERVICE, KEY, key)
        self.inventory = Inventory({"pods": self._pods}, identity=self.identity, hold=LISTS_HOLD)

    async def instances(self, cluster: Cluster) -> list[Instance]:
        """
        List the pods of a pool; one just rented that lists do not have yet is pending.

        Args:
            cluster: The pool.

        Raises:
            SkywardError: If the list fails, or holds what cannot be understood.
        """
        rows = await self.inventory.rows(pool_id=cluster.pool_id)
        ours = [*of_pool(rows, tags_of, cluster.pool_id).values()]
        return self.api.understood(ours, lambda ours: [described(row, cluster) for row in ours], f"GET {PODS}")

    async def owned(self) -> list[Instance]:
        """
        List all pods of ours in the account, those in clusters too.

        Raises:
            SkywardError: If the list fails, or holds what cannot be understood.
        """
        rows = [row for row in (await self.inventory.rows(within=0.0)).values() if tags_of(row) is not None]
        found = self.api.understood(rows, lambda rows: [described(row) for row in rows], f"GET {PODS}")
        return [each for each in found if each.state is not InstanceState.ENDED]

    async def terminate(self, ids: Sequence[str]) -> None:
        """
        Terminate pods, and return when no list has them any more.

        Args:
            ids: Which; one that is gone already is no error.

        Raises:
            ProvisionError: If one may still be billed.
        """
        clusters: dict[str, str] = {}

        async def end(pod: str) -> None:
            if pod in clusters:
                # A member of a cluster ends with all of it.
                await self.api.delete(f"/v2/clusters/{clusters[pod]}", also=(404,))
            elif await self.api.delete(f"{PODS}/{pod}", also=(404, 409), read=lambda _: True):
                self.inventory.forget([pod])

        async def left(asked: Sequence[str]) -> Collection[str]:
            rows = await self.inventory.rows(within=0.0)
            for pod in asked:
                if (cluster := optional(rows.get(pod, {}), "cluster.id", text)) is not None:
                    clusters[pod] = cluster
            return {pod for pod in asked if pod in rows and rows[pod].get("status") != "TERMINATED"}

        # It takes one pod a call.
        hint = "Type: for pod in {ids}; do runpodctl pod delete $pod; done"
        await end_for_good(ids, end=end, left=left, provider="runpod", hint=hint)

    async def volume(self, wanted: str) -> CloudDisk:
        """
        Look for a network volume, which several pods of its own data centre may have at a time.

        Args:
            wanted: Its id or name.

        Raises:
            ConfigError: If there is none, or there are several of the name.
            SkywardError: If RunPod does not answer.
        """
        known: list[CloudDisk] = await self.api.get(
            VOLUMES, read=lambda answer: [_volume(row) for row in listed(answer, "networkVolumes")]
        )
        return chosen(known, wanted, "RunPod")

    async def _pods(self) -> dict[str, Mapping[str, Any]]:
        # Members of clusters are left out unless they are asked for.
        rows: dict[str, Mapping[str, Any]] = await self.api.get(
            PODS,
            params={"includeClusterPods": "true"},
            read=lambda answer: by_id(listed(answer, "pods"), text, provider="runpod"),
        )
        return rows


def _volume(row: Any) -> CloudDisk:
    return CloudDisk(id=text(row, "id"), name=text(row, "name"), place=text(row, "dataCenter"), shared=True)
