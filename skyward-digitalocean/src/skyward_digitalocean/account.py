"""The account: its token, its calls, and what was rented so lately that lists may not know it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from skyward.provider import (
    Api,
    Credential,
    Limit,
    Login,
    Misread,
    Service,
    Shared,
    field as field_of,
    identified,
    listed,
    text,
    whole,
)
from skyward_digitalocean.failure import meaning
from skyward_digitalocean.tagging import OURS, tags_in

__all__ = ["TOKEN", "URL", "Account", "Launched"]

URL = "https://api.digitalocean.com"
TOKEN = Credential(
    provider="digitalocean",
    title="DigitalOcean",
    parameter="token",
    variables=("DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN"),
    hint="Make one at DigitalOcean under API, and set DIGITALOCEAN_TOKEN.",
    word="token",
)
"""Where DigitalOcean's own tools look for the token as well."""

UNSEEN = 3.0
"""Seconds for which a droplet that was rented and is in no list is taken for new without asking for it."""

LISTS_HOLD = 2.0
"""Seconds for which pools of one account share a list; with two lists in that time an hour has 3600 calls of 5000."""

LIMITS = {"": (Limit(5000, 3600.0), Limit(250, 60.0)), "keys": (Limit(10, 60.0),)}
"""Rate limits of a token; the account's SSH keys may be listed more rarely than the rest."""

_PAGE = 200
_MOST_PAGES = 500


@frozen(kw_only=True)
class Launched:
    """
    Remember a droplet that was just rented.

    Args:
        pool_id: Its pool.
        token: The request that it was rented for.
        at: When, on the monotonic clock.
        row: What DigitalOcean said of it.
    """

    pool_id: str
    token: str
    at: float = field(factory=time.monotonic)
    row: Mapping[str, Any]


class Account:
    """
    Ask DigitalOcean.

    Args:
        token: The token; None for that of the environment.
        url: Where the API is; None for what the environment says.
    """

    def __init__(self, token: str | None, url: str | None) -> None:
        self._token = token
        self._url = url
        self._shared: Shared | None = None
        self.unseen = UNSEEN
        self.lists_hold = LISTS_HOLD
        self.launched: dict[str, Launched] = {}
        self.gpus: dict[str, bool] = {}
        """Whether a pool that was rented for here has GPUs, which other lists show."""
        self.odd_refusals = 0
        """Refusals in a row whose reason is not known."""

    @cached_property
    def api(self) -> Api:
        """Return what makes the calls."""
        url = self._url or os.environ.get("DIGITALOCEAN_API_URL") or URL
        service = Service(
            provider="digitalocean",
            title="DigitalOcean",
            base_url=url.rstrip("/"),
            limits=LIMITS,
            meaning=meaning,
        )
        return Api(service, lambda _stale: Login.bearer(TOKEN.find(self._token, os.environ)))

    async def pages(self, path: str, key: str, *, lane: str = "", **params: str) -> list[Any]:
        """
        Return what all pages of a list hold.

        Args:
            path: Of what.
            key: Name of the list in the answer.
            lane: The kind of call, for its limits.
            params: What is asked.

        Raises:
            SkywardError: If it is refused.
        """
        found: list[Any] = []
        for page in range(1, _MOST_PAGES):
            asked = {**params, "page": page, "per_page": _PAGE}
            rows, more = await self.api.get(path, params=asked, lane=lane, read=lambda answer: _page(answer, key))
            found += rows
            if not more or not rows:
                break
        return found

    async def ours(self, *, gpus: bool) -> dict[str, Mapping[str, Any]]:
        """
        List the droplets of Skyward in the account, by id; pools that ask at once share the answer.

        Args:
            gpus: Whether to look at those with GPUs as well, which are in a list of their own that takes no tag.

        Raises:
            SkywardError: If a list fails; that is no empty list.
        """
        # Kept, because it lasts as long as something refers to it.
        shared = self._shared = Shared.of(f"{self.api.service.base_url} {TOKEN.known(self._token, os.environ)}")
        rows = await shared.ask("droplets", self.lists_hold, lambda: self.fresh(gpus=False))
        more = await shared.ask("gpus", self.lists_hold, lambda: self.fresh(gpus=True)) if gpus else {}
        return {**rows, **more}

    async def unlisted(self, pool_id: str, listed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """
        Return a pool's droplets that were rented here and have been in no list yet: lists trail launches.

        A launch that was accepted may still fail, and its droplet vanishes; so each is asked for by itself.

        Args:
            pool_id: The pool.
            listed: What lists have, by id; it is not remembered any more.

        Raises:
            SkywardError: If a call fails.
        """
        now, found = time.monotonic(), []
        for name, known in [*self.launched.items()]:
            if known.pool_id != pool_id:
                continue
            if name in listed:
                del self.launched[name]
                continue
            row: Mapping[str, Any] | None = known.row
            if now - known.at > self.unseen:
                row = await self.api.get(f"/v2/droplets/{name}", also=(404,), read=_droplet)
            if row is None:
                self.launched.pop(name, None)
            else:
                found.append(row)
        return found

    async def fresh(self, *, gpus: bool) -> dict[str, Mapping[str, Any]]:
        """
        List the droplets of Skyward now: those without GPUs, or those with.

        Args:
            gpus: Which list.

        Raises:
            SkywardError: If it fails.
        """
        question = {"type": "gpus"} if gpus else {"tag_name": OURS}
        rows = await self.pages("/v2/droplets", "droplets", **question)
        return {str(row["id"]): row for row in rows if OURS in tags_in(row)}


def _page(answer: Any, key: str) -> tuple[list[Any], bool]:
    """Read a page, and whether there is another."""
    rows = listed(answer, key)
    if key == "droplets":
        try:
            rows = [*identified(rows, lambda row: whole(row, "id"), provider="digitalocean")]
        except ValueError as error:
            raise Misread(str(error)) from error
    if not all(isinstance(row, Mapping) for row in rows):
        raise Misread(f"{key!r} holds something that is no object")
    links = answer.get("links") or {}
    pages = links.get("pages") or {} if isinstance(links, Mapping) else {}
    return rows, isinstance(pages, Mapping) and bool(pages.get("next"))


def _droplet(answer: Any) -> Mapping[str, Any]:
    row = field_of(answer, "droplet")
    whole(row, "id")
    text(row, "name")
    found: Mapping[str, Any] = row
    return found
