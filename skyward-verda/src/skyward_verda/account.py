"""One account: its API, and what was rented a moment ago, which lists may not show yet."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define, frozen

from skyward.provider import Api, Service, Shared, text
from skyward_verda.failure import meaning, unless_gone
from skyward_verda.instances import checked, known_rows, read_rows
from skyward_verda.login import Credentials, Tokens, find_credentials

__all__ = ["LAG", "Account", "Wish", "whose"]

LAG = 60.0
"""Seconds in which a machine may be missing from lists after it was rented."""


LISTS_HOLD = 0.5
"""Seconds for which pools share a list."""


@frozen(kw_only=True)
class Wish:
    """
    Say as whom the account is used; what is None is looked for where Verda's own command looks.

    Args:
        client_id: Id of the API's client.
        client_secret: Its secret.
        profile: A profile of Verda's own command.
    """

    client_id: str | None
    client_secret: str | None
    profile: str | None


@define(eq=False)
class _Launched:
    """Remember a machine that was just rented: when, as what, and when a list that had it was asked for."""

    at: float
    row: Mapping[str, Any]
    seen_at: float = 0.0


def whose(wish: Wish, environment: Mapping[str, str]) -> str:
    """
    Return one account from another without a request.

    Args:
        wish: As whom the account is used.
        environment: The variables that Verda's own command looks at.

    >>> whose(Wish(client_id=None, client_secret=None, profile=None), {"VERDA_CLIENT_ID": "me"})
    'me  '
    """
    name = wish.client_id or environment.get("VERDA_CLIENT_ID", "")
    profile = wish.profile or environment.get("VERDA_PROFILE", "")
    return " ".join((name, profile, environment.get("VERDA_HOME", "")))


class Account:
    """
    Ask Verda.

    Args:
        wish: As whom.
    """

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self.lists_hold = LISTS_HOLD
        self._launched: dict[str, _Launched] = {}
        self._shared: Shared | None = None
        self.tags_refused = False

    @cached_property
    def credentials(self) -> Credentials:
        """
        Return the credentials, looked for when they are needed first.

        Raises:
            NoCredentialsError: If there are none.
        """
        wish = self._wish
        return find_credentials(wish.client_id, wish.client_secret, wish.profile, os.environ)

    @cached_property
    def api(self) -> Api:
        """
        Return the API.

        Raises:
            NoCredentialsError: If there are no credentials.
        """
        service = Service(provider="verda", title="Verda", base_url=self.credentials.base_url, meaning=meaning)
        return Api(service, Tokens.of(self.credentials, service).login)

    def launched(self, row: Mapping[str, Any]) -> None:
        """
        Remember a machine that was just rented.

        Args:
            row: As a list will show it.
        """
        self._launched[text(row, "id")] = _Launched(time.monotonic(), row)

    async def watched(self, pool_id: str) -> list[Mapping[str, Any]]:
        """
        List the machines of a pool as `rows` does; pools that ask at once share the answer.

        Args:
            pool_id: The pool.

        Raises:
            SkywardError: If there is no answer: that is no empty list.
        """
        # Kept, because it lasts as long as something refers to it.
        shared = self._shared = Shared.of(f"{self.credentials.base_url} {self.credentials.client_id}")
        return known_rows(
            await self._with_launched(await shared.ask("instances", self.lists_hold, self._listed)), pool_id
        )

    async def rows(self, pool_id: str | None = None) -> list[Mapping[str, Any]]:
        """
        List our machines now; one that was just rented, and that lists do not show yet, is asked for by its id.

        Args:
            pool_id: Only those of this pool; None for all.

        Raises:
            SkywardError: If there is no answer: that is no empty list.
        """
        answer = await self._with_launched(await self._listed())
        return answer if pool_id is None else known_rows(answer, pool_id)

    async def _listed(self) -> tuple[float, Sequence[Mapping[str, Any]]]:
        asked_at = time.monotonic()
        return asked_at, await self.api.get("/instances", read=read_rows)

    async def _with_launched(self, listed: tuple[float, Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        asked_at, rows = listed
        answer = list(rows)
        by_id = {text(row, "id"): row for row in rows}
        now = time.monotonic()
        for name, known in list(self._launched.items()):
            if now - known.at >= LAG:
                self._launched.pop(name, None)
                continue
            if name in by_id:
                known.row, known.seen_at = by_id[name], max(known.seen_at, asked_at)
                continue
            if asked_at < max(known.at, known.seen_at):
                # The list is older than what is known.
                answer.append(known.row)
                continue
            if known.seen_at:
                self._launched.pop(name, None)
                continue
            there = await unless_gone(self.api.get(f"/instances/{name}", also=(404,), read=checked))
            answer.append({**known.row, **(there or {})})
        return answer
