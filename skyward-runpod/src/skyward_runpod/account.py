"""The account: its key, its calls, and what was rented so lately that lists may not know it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from skyward.provider import Api, Credential, Login, Misread, Service, Shared, identified, listed, text
from skyward_runpod.failure import PODS, meaning

__all__ = ["KEY", "Account"]

KEY = Credential(
    provider="runpod",
    title="RunPod",
    parameter="api_key",
    variables=("RUNPOD_API_KEY",),
    hint="Make one in RunPod's console under Settings, API Keys, and set RUNPOD_API_KEY.",
)

URL, URL_VARIABLE = "https://api.runpod.io", "RUNPOD_API_BASE_URL"

LAG = 60.0
"""Seconds in which a pod may be missing from lists after it was rented."""

LISTS_HOLD = 1.0
"""Seconds for which pools of one account share a list: 60 calls a minute are allowed at least."""


class Account:
    """
    Ask RunPod.

    How fast is up to its own headers, which say what is left of an allowance that differs from account to account.

    Args:
        key: The key; None for that of the environment.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self.lists_hold = LISTS_HOLD
        self.launched: dict[str, float] = {}
        """When pods were rented that no list has shown yet, and whose end is not confirmed; by id."""
        self.rented_at = float("-inf")
        """When something was last rented here, or may have been, on the monotonic clock."""
        self._shared: Shared | None = None
        self.tokens: set[str] = set()
        """The requests that something was rented for, or may have been."""

    @cached_property
    def api(self) -> Api:
        """Return what makes the calls."""
        url = os.environ.get(URL_VARIABLE) or URL
        service = Service(provider="runpod", title="RunPod", base_url=url.rstrip("/"), meaning=meaning)
        return Api(service, lambda _stale: Login.bearer(KEY.find(self._key, os.environ)))

    async def pods(self) -> list[Mapping[str, Any]]:
        """
        List the pods of the account, those of clusters too; pools that ask at once share the answer.

        Raises:
            SkywardError: If it fails; that is no empty list.
        """
        if time.monotonic() - self.rented_at <= self.lists_hold:
            # A list from before would not have it.
            return await self.fresh()
        # Kept, because the shared answer lives only while it is referenced.
        shared = self._shared = Shared.of(f"{self.api.service.base_url} {KEY.find(self._key, os.environ)}")
        return await shared.ask("pods", self.lists_hold, self.fresh)

    async def fresh(self) -> list[Mapping[str, Any]]:
        """
        List the pods of the account now.

        Raises:
            SkywardError: If it fails.
        """
        # Members of clusters are left out unless they are asked for.
        rows: list[Mapping[str, Any]] = await self.api.get(PODS, params={"includeClusterPods": "true"}, read=_rows)
        for row in rows:
            self.launched.pop(row["id"], None)
        return rows

    def is_fresh(self, pod: str) -> bool:
        """
        Return whether a pod was rented so lately that lists may not know it.

        Args:
            pod: Its id.
        """
        return time.monotonic() - self.launched.get(pod, -LAG) < LAG


def _rows(answer: Any) -> list[Mapping[str, Any]]:
    try:
        return identified(listed(answer, "pods"), lambda row: text(row, "id"), provider="runpod")
    except ValueError as error:
        raise Misread(str(error)) from error
