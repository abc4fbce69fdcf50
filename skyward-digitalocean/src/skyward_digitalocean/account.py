"""The account: its token, its calls, and its droplets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    CloudDisk,
    ConfigError,
    Created,
    Credential,
    CredentialsError,
    Instance,
    Inventory,
    KeyAccount,
    Limit,
    Service,
    by_id,
    by_link,
    chosen,
    end_for_good,
    field,
    listed,
    objects,
    of_pool,
    optional,
    text,
    whole,
)
from skyward_digitalocean.catalogue import is_gpu
from skyward_digitalocean.droplets import described
from skyward_digitalocean.failure import CREATE, meaning
from skyward_digitalocean.tagging import OURS, expiry_tag, pool_tag, tags_in, tags_of

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["LIMITS", "LISTS_HOLD", "TOKEN", "Account"]

TOKEN = Credential(
    provider="digitalocean",
    title="DigitalOcean",
    parameter="token",
    variables=("DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN"),
    hint="Make one at DigitalOcean under API, and set DIGITALOCEAN_TOKEN.",
    word="token",
)
"""Where DigitalOcean's own tools look for the token as well."""

LIMITS = {"": (Limit(5000, 3600.0), Limit(250, 60.0)), "keys": (Limit(10, 60.0),)}
"""Rate limits of a token; the account's SSH keys may be listed more rarely than the rest."""

SERVICE = Service(
    provider="digitalocean",
    title="DigitalOcean",
    base_url="https://api.digitalocean.com",
    url_variable="DIGITALOCEAN_API_URL",
    limits=LIMITS,
    meaning=meaning,
)

UNSEEN = 3.0
"""Seconds for which a droplet that was rented and is in no list is taken for new without asking for it."""

LISTS_HOLD = 2.0
"""Seconds for which pools of one account share a list; with two lists in that time an hour has 3600 calls of 5000."""

_ASK_EACH = 8
_MORE = by_link("links.pages.next")


Read = Callable[[object, str], list[Any]]
"""Reads a field that holds a list."""


class Account(KeyAccount):
    """
    Ask DigitalOcean.

    Args:
        token: The token; None for that of the environment.
        url: Where the API is; None for what the environment says.
        port: Port of the droplets' SSH servers.
    """

    def __init__(self, token: str | None, url: str | None, port: int) -> None:
        super().__init__(SERVICE, TOKEN, token, url)
        self._port = port
        # Those with GPUs are in a list of their own, which takes no tag.
        lists = {"droplets": partial(self._ours, tag_name=OURS), "gpus": partial(self._ours, type="gpus")}
        self.inventory = Inventory(lists, identity=self.identity, hold=LISTS_HOLD, lag=UNSEEN, look=self._droplet)
        self.gpus: dict[str, bool] = {}
        """Whether a pool that was rented for here has GPUs."""
        self.odd_refusals = 0
        """Refusals in a row whose reason is not known."""

    async def pages(self, path: str, key: str, read: Read = objects, *, lane: str = "", **params: str) -> list[Any]:
        """
        Return what all pages of a list hold.

        Args:
            path: Of what.
            key: Name of the list in the answer.
            read: Reads it.
            lane: The kind of call, for its limits.
            params: What is asked.

        Raises:
            SkywardError: If it is refused.
        """
        asked = {**params, "per_page": "200"}
        return await self.api.pages(path, lambda answer: read(answer, key), _MORE, params=asked, lane=lane)

    def instance(self, row: Any, cluster: Cluster | None = None) -> Instance:
        """
        Describe a droplet, as `described` does; a row that is none is an error of Skyward.

        Args:
            row: The droplet.
            cluster: The pool that reaches it; None if it is not reached.

        Raises:
            ProvisionError: If it has no id.
        """
        key, rate = (cluster.key, cluster.offer.on_demand_price) if cluster is not None else (None, None)
        return self.api.understood(row, lambda row: described(row, key, port=self._port, rate=rate), f"GET {CREATE}")

    async def instances(self, cluster: Cluster) -> list[Instance]:
        """
        List the pool's droplets by tag; one just rented that lists do not have yet is pending.

        Args:
            cluster: The pool.

        Raises:
            SkywardError: If a list fails.
        """
        pool = cluster.pool_id
        # Who did not rent them cannot know of which kind they are: an offer may have been passed over for another.
        gpus = ("gpus",) if is_gpu(cluster.offer) or self.gpus.get(pool, True) else ()
        rows = await self.inventory.rows("droplets", *gpus, pool_id=pool)
        return [self.instance(row, cluster) for row in of_pool(rows, tags_of, pool).values()]

    async def owned(self) -> list[Instance]:
        """
        List every droplet of ours.

        Raises:
            SkywardError: If a list fails.
        """
        return [self.instance(row) for row in (await self.inventory.rows(within=0.0)).values()]

    async def terminate(self, ids: Sequence[str]) -> None:
        """
        Delete droplets, and return when DigitalOcean has none of them any more.

        Args:
            ids: Which; one that is gone already is no error.

        Raises:
            ProvisionError: If one may still be billed.
        """

        async def end(name: str) -> None:
            await self.api.delete(f"{CREATE}/{name}", also=(404,), subject="delete")
            self.inventory.forget([name])

        async def left(names: Sequence[str]) -> Collection[str]:
            return await self.inventory.rows(within=0.0) if len(names) > _ASK_EACH else await self.living(names)

        await end_for_good(
            # What is no number is no droplet.
            [each for each in ids if each.isascii() and each.isdigit()],
            end=end,
            left=left,
            provider="digitalocean",
            hint="Type: doctl compute droplet delete --force {ids}",
        )

    async def living(self, ids: Sequence[str]) -> list[str]:
        """
        Return those of some droplets that exist: a volume names one that was deleted a moment ago still as its holder.

        Args:
            ids: Their ids.

        Raises:
            SkywardError: If DigitalOcean refuses.
        """
        rows = await asyncio.gather(*(self.api.get(f"{CREATE}/{name}", also=(404,)) for name in ids))
        return [name for name, row in zip(ids, rows, strict=True) if row is not None]

    async def renew(self, pool_id: str, ids: Sequence[str], expires_at: float) -> None:
        """
        Write a later expiry on droplets, and take the earlier ones away.

        Args:
            pool_id: Their pool.
            ids: Which; one that is gone already is no error.
            expires_at: Seconds since 1970.
        """
        name = expiry_tag(pool_id, expires_at)
        rows = (await self.inventory.rows(within=0.0)).items()
        there = {each: tags_in(row) for each, row in rows if pool_tag(pool_id) in tags_in(row)}
        wanted = [each for each in ids if each in there]
        if not wanted:
            return
        await self.api.post("/v2/tags", json={"name": name}, once=False)
        resources = [{"resource_id": each, "resource_type": "droplet"} for each in wanted]
        await self.api.post(f"/v2/tags/{name}/resources", json={"resources": resources}, once=False, also=(404,))
        front = name.rpartition(":")[0]
        worn = {tag for each in wanted for tag in there[each] if tag.startswith(f"{front}:") and tag != name}
        others = {tag for each, tags in there.items() if each not in wanted for tag in tags}
        for tag in sorted(worn - others):
            await self.api.delete(f"/v2/tags/{tag}", also=(404,))

    async def volume(self, wanted: str) -> CloudDisk:
        """
        Look for a volume of block storage, which is for one droplet of its region.

        Args:
            wanted: Its id or name.

        Raises:
            ConfigError: If there is none, or there are several of the name.
            SkywardError: If DigitalOcean refuses.
        """
        rows = await self.pages("/v2/volumes", "volumes")
        known = self.api.understood(rows, lambda rows: [_volume(row) for row in rows], "GET /v2/volumes")
        return chosen(known, wanted, "DigitalOcean")

    async def check_vpc(self, vpc: str) -> None:
        """
        Check that there is a network, and that the token may look at it, which a launch in it needs.

        Args:
            vpc: Its id.

        Raises:
            ConfigError: If there is none.
            CredentialsError: If it may not.
        """
        if await self.api.get(f"/v2/vpcs/{vpc}", also=(404,)) is None:
            said = f"DigitalOcean has no VPC {vpc!r} in this account."
            raise ConfigError(said, provider="digitalocean", hint="Type: doctl vpcs list")

    async def check_renewing(self) -> None:
        """
        Check that the token may write a later expiry on droplets; a token of custom scopes may rent and not do that.

        A tag that there is not is to be put on a droplet that is not ours: nothing is done, and only a missing scope
        is refused as such.

        Raises:
            CredentialsError: If it may not.
        """
        resources = [{"resource_id": "1", "resource_type": "droplet"}]
        path = "/v2/tags/skyward:preflight/resources"
        try:
            await self.api.post(path, json={"resources": resources}, also=(404, 409, 422), once=False)
        except CredentialsError as error:
            raise CredentialsError(
                f"This token may not say of droplets that their client still lives, so none is rented. {error.message}",
                provider="digitalocean",
                hint=error.hint,
            ) from error

    async def _ours(self, **question: str) -> dict[str, Mapping[str, Any]]:
        listed_now = await self.pages(CREATE, "droplets", listed, **question)
        rows = self.api.understood(listed_now, partial(by_id, read=whole, provider="digitalocean"), f"GET {CREATE}")
        return {name: row for name, row in rows.items() if OURS in tags_in(row)}

    async def _droplet(self, known: Created[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Ask for a droplet by its id: a launch that was accepted may still fail, and its droplet vanishes."""
        row: Mapping[str, Any] | None = await self.api.get(f"{CREATE}/{known.id}", also=(404,), read=_droplet)
        return row


def _droplet(answer: Any) -> Mapping[str, Any]:
    row: Mapping[str, Any] = field(answer, "droplet")
    whole(row, "id")
    text(row, "name")
    return row


def _volume(row: Any) -> CloudDisk:
    holders = optional(row, "droplet_ids", listed) or []
    return CloudDisk(
        id=text(row, "id"),
        name=text(row, "name"),
        place=text(row, "region.slug"),
        holders=tuple(str(whole({"id": each}, "id")) for each in holders),
    )
