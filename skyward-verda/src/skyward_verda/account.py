"""One account: its API, and its machines, those among them that lists may not show yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skyward.provider import Api, Created, Instance, Inventory, Service, SSHAddress
from skyward_verda.failure import meaning, unless_gone
from skyward_verda.instances import checked, described, door, pool_of, read_rows
from skyward_verda.login import Credentials, Wish, find_credentials, token_login

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["LAG", "Account"]

LAG = 60.0
"""Seconds in which a machine may be missing, from lists and by its id, after it was rented."""

LISTS_HOLD = 0.5
"""Seconds for which pools share a list."""


class Account:
    """
    Ask Verda.

    Args:
        wish: As whom.
        port: Port of the machines' SSH servers.
    """

    def __init__(self, wish: Wish, port: int = 22) -> None:
        self._wish = wish
        self._port = port
        self.tags_refused = False
        # No lag: a machine that a list lacks is asked for by its id at once.
        self.inventory: Inventory[Mapping[str, Any]] = Inventory(
            {"instances": self._listed}, identity=self._identity, hold=LISTS_HOLD, lag=0.0, look=self._look
        )

    @cached_property
    def credentials(self) -> Credentials:
        """
        Return the credentials, looked for when they are needed first.

        Raises:
            NoCredentialsError: If there are none.
        """
        return find_credentials(self._wish, os.environ)

    @cached_property
    def api(self) -> Api:
        """
        Return the API.

        Raises:
            NoCredentialsError: If there are no credentials.
        """
        service = Service(provider="verda", title="Verda", base_url=self.credentials.base_url, meaning=meaning)
        return Api(service, token_login(self.credentials, service).login)

    async def rows(self) -> list[Mapping[str, Any]]:
        """
        List our machines now; one that was just rented, and that lists do not show yet, is asked for by its id.

        Raises:
            SkywardError: If there is no answer: that is no empty list.
        """
        return [*(await self.inventory.rows(within=0.0)).values()]

    async def instances(self, cluster: Cluster) -> Sequence[Instance]:
        """
        List the machines of a pool as `rows` does; pools that ask at once share the answer.

        Args:
            cluster: The pool.

        Raises:
            SkywardError: If there is no answer: that is no empty list.
        """
        offer, opened = cluster.offer, self.door(cluster)
        rates = {offer.instance_type: offer.data.get("on_demand")}
        rows = await self.inventory.rows(pool_id=cluster.pool_id)
        ours = [row for row in rows.values() if pool_of(str(row.get("hostname"))) == cluster.pool_id]
        return [described(row, opened, on_demand=rates.get(str(row.get("instance_type")))) for row in ours]

    def door(self, cluster: Cluster) -> Callable[[str], SSHAddress]:
        """Return what tells how a machine of a pool is reached at its IP address."""
        return door(cluster.key, cluster.pool_id, self._port)

    def _identity(self) -> str:
        return f"{self.credentials.base_url} {self.credentials.client_id}"

    async def _listed(self) -> dict[str, Mapping[str, Any]]:
        return dict(await self.api.get("/instances", read=read_rows))

    async def _look(self, known: Created[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        row = await unless_gone(self.api.get(f"/instances/{known.id}", also=(404,), read=checked))
        if row is None and known.age >= LAG:
            return None
        return {**known.row, **(row or {})}
