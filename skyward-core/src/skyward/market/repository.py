"""
What providers sell now: asked side by side, kept for as long as each of them allows, looked up in the cache.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar

from skyward.blocking import in_thread
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.source.environment import cache_directory
from skyward.errors import AllProvidersFailedError, ConfigError, SkywardError
from skyward.market.handles import given_handles, installed_handles
from skyward.market.query import Query
from skyward.market.query_answer import QueryAnswer, answer
from skyward.market.source import ask, source_of
from skyward.market.store import OfferStore, Source
from skyward.model.accelerators.accelerator import Accelerator
from skyward.plan.offers.offer_sql import VERSION
from skyward.plan.offers.tried import each
from skyward.plan.offers.wanted import Wanted

__all__ = ["Offers", "offers"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_TRIES = 3
"""How often a look into the cache is tried, if others throw away what was just written."""


class Offers:
    """
    Look up what providers sell now.

    Nothing is asked before the first query, or before it is awaited. What was asked is kept in a cache that all
    processes of the user share, and asked again once it is older than the provider's `offers_ttl_s`.

    Args:
        handles: The providers.
        failures: Those that could not even be made, by name.
    """

    def __init__(self, handles: Iterable[ProviderHandle], failures: Mapping[str, SkywardError]) -> None:
        self._handles = {source_of(handle): handle for handle in handles}
        self._store = OfferStore(cache_directory() / "offers" / f"offers-{VERSION}.sqlite")
        self._unmade = dict(failures)
        self._failed: dict[Source, tuple[SkywardError, float]] = {}
        self._asking: dict[Source, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.providers)}>"

    def __await__(self) -> Generator[Any, None, Offers]:
        return QueryAnswer(self._loaded).__await__()

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the names of the providers."""
        return tuple(dict.fromkeys(source.provider for source in self._handles))

    @property
    def regions(self) -> tuple[str, ...] | None:
        """Return where they sell; None where one of them does not say."""
        said = [handle.facts.regions for handle in self._handles.values()]
        return tuple(sorted({region for regions in said for region in regions})) if all(said) else None

    @property
    def failures(self) -> Mapping[str, SkywardError]:
        """Return why providers sell nothing here, by name, as of the last look."""
        return {**self._unmade, **{source.provider: error for source, (error, _) in self._failed.items()}}

    def select(self) -> Query:
        """Return a query for everything."""
        return Query(offers=self)

    def accelerator(self, name: Accelerator | str) -> Query:
        """Return a query for offers with these accelerators; see `Query.accelerator`."""
        return self.select().accelerator(name)

    def provider(self, name: str) -> Query:
        """Return a query for offers of one provider; see `Query.provider`."""
        return self.select().provider(name)

    def region(self, region: str) -> Query:
        """Return a query for offers in one region; see `Query.region`."""
        return self.select().region(region)

    def architecture(self, name: str) -> Query:
        """Return a query for offers with accelerators of one generation; see `Query.architecture`."""
        return self.select().architecture(name)

    def manufacturer(self, name: str) -> Query:
        """Return a query for offers with accelerators of one maker; see `Query.manufacturer`."""
        return self.select().manufacturer(name)

    def cpu_only(self) -> Query:
        """Return a query for offers without accelerators; see `Query.cpu_only`."""
        return self.select().cpu_only()

    def look_up(
        self,
        wanted: Wanted,
        look: Callable[[OfferStore, Wanted, list[Source]], T | None],
        read: Callable[[T], Any] = lambda found: found,
    ) -> Any:
        """
        Look into the cache once what it has is new enough.

        Args:
            wanted: What is asked for.
            look: Called in a thread; returns None if a source is not there.
            read: Makes the answer of what `look` returns.

        Returns:
            The answer; where an event loop runs, something to await that also stands for it.

        Raises:
            AllProvidersFailedError: If none of the providers could say what it sells.
            ConfigError: If the cache cannot be used.
        """

        async def looked_up() -> Any:
            for _ in range(_TRIES):
                sources = await self._fresh(wanted.provider)
                found = await in_thread(look, self._store, wanted, sources)
                if found is not None:
                    return read(found)
            raise ConfigError(f"The cache of offers, {self._store.path}, is emptied as soon as it is filled.")

        return answer(looked_up)

    async def _loaded(self) -> Offers:
        await self._fresh(None)
        return self

    async def _fresh(self, provider: str | None) -> list[Source]:
        """
        Refresh every provider's offers in the cache, or those of one.

        Raises:
            AllProvidersFailedError: If none of them could say what it sells.
        """
        sources = [source for source in self._handles if provider in (None, source.provider)]
        await asyncio.gather(*map(self._refresh, sources))
        there = [source for source in sources if source not in self._failed]
        if there:
            return there
        failed = [(source.provider, self._failed[source][0]) for source in sources]
        reasons = tuple((name, str(error)) for name, error in (*self._unmade.items(), *failed))
        raise AllProvidersFailedError(f"No provider says what it sells: {each(reasons)}", reasons=reasons)

    async def _refresh(self, source: Source) -> None:
        """Ask a provider, unless what it said or how it failed is new enough; together with those that ask it now."""
        task = self._asking.get(source)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._asking[source] = asyncio.create_task(self._asked(source))
        # Others wait for it too, so that it does not end with one of them.
        await asyncio.shield(task)

    async def _asked(self, source: Source) -> None:
        handle, now = self._handles[source], time.time()
        failed = self._failed.get(source)
        if failed is not None and _is_new(failed[1], now, handle):
            return
        asked_at = await in_thread(self._store.asked_at, source)
        if asked_at is None or not _is_new(asked_at, now, handle):
            try:
                found = await ask(handle, now)
            except SkywardError as error:
                self._failed[source] = (error, now)
                _log.warning("offers.failed provider=%s reason=%s", handle.name, error)
                return
            await in_thread(self._store.put, source, found, now)
        self._failed.pop(source, None)


def _is_new(at: float, now: float, handle: ProviderHandle) -> bool:
    """Return whether what a provider said at some time still holds; nothing said in the future does."""
    return 0 <= now - at < handle.facts.offers_ttl_s


def offers(providers: Any = None) -> Offers:
    """
    Return a repository of what providers sell now.

    It and all that its queries return can be awaited, or used plainly.

    Args:
        providers: A provider or several; without any, all that are installed and can be made without arguments. Of
            these, one without credentials is left out with a warning.

    Raises:
        ConfigError: If one of them is no provider.
        AllProvidersFailedError: On the first look, if none of them can say what it sells.

    >>> import skyward as sky
    >>> sky.offers([sky.Local()]).cpu_only().count()
    1
    """
    if providers is None:
        return Offers(*installed_handles())
    return Offers(given_handles(providers), {})
