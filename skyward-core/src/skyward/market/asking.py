"""
Ask all providers for what is ours there, side by side, and order each what to do with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Generic, TypeVar

from attrs import field, frozen

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.engine.pool.pool_file import providers_of_file
from skyward.errors import AllProvidersFailedError, ConfigError, NoCredentialsError, SkywardError
from skyward.market.handles import given_handles, installed_handles
from skyward.market.source import source_of
from skyward.model.fields.setting import nearest
from skyward.registry import plugin, provider, providers as installed_providers

__all__ = ["Answers", "ask_all", "provider_handles", "tell_each"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


@frozen(kw_only=True, eq=False)
class Answers(Generic[T]):
    """
    Hold what clouds say is ours.

    Args:
        found: What there is, each with the provider that lists it.
        asked: The names of the providers that may have some.
        failures: Why providers could not be asked, by name: what they have is not known.
        left_out: Why providers were left out that are only installed, and that there are no credentials for.
    """

    found: tuple[tuple[ProviderHandle, T], ...]
    asked: tuple[str, ...]
    failures: dict[str, SkywardError]
    left_out: dict[str, SkywardError] = field(factory=dict)

    @property
    def unknown(self) -> dict[str, SkywardError]:
        """Return why providers that are installed were not asked or did not answer, by name."""
        return {**self.failures, **self.left_out}

    @property
    def values(self) -> list[T]:
        """Return what there is."""
        return [value for _, value in self.found]

    def with_warnings(self, what: str) -> list[T]:
        """
        Return what there is, with a warning in the log for each provider that could not be asked.

        Args:
            what: What was asked for, in words.

        Raises:
            AllProvidersFailedError: If none of them can be asked.
        """
        if self.failures and not self.found:
            reasons = tuple((name, str(error)) for name, error in self.failures.items())
            lines = "".join(f"\n  {name}: {reason}" for name, reason in reasons)
            raise AllProvidersFailedError(f"No provider says which {what} there are:{lines}", reasons=reasons)
        for name, error in self.failures.items():
            _log.warning("%s.failed provider=%s reason=%s", what.replace(" ", "_"), name, error)
        return self.values


async def ask_all(hook: str, providers: Any = None, *, only: Collection[str] = (), **arguments: Any) -> Answers[Any]:
    """
    Ask providers, side by side, with a hook that lists what is ours.

    Args:
        hook: Its name; providers without it are not asked.
        providers: A provider or several; without any, those of the nearest `skyward.toml` and all that are installed
            and can be made without arguments. Of these, one for which there are no credentials is left out.
        only: The names of those that are asked; none for all of them.
        arguments: All arguments of the hook.

    Raises:
        ConfigError: If one of them is no provider.
    """
    named, installed, failures = provider_handles(providers, only)
    asked = [handle for handle in (*named, *installed) if handle.implements(hook)]
    answers = await asyncio.gather(*(_ask(handle, hook, arguments) for handle in asked))
    found: list[tuple[ProviderHandle, Any]] = []
    names: dict[str, None] = {}
    left_out: dict[str, SkywardError] = {}
    for handle, answered in zip(asked, answers, strict=True):
        if isinstance(answered, NoCredentialsError) and handle in installed:
            _log.info("%s.left_out provider=%s reason=%s", hook, handle.name, answered)
            left_out[handle.name] = answered
            continue
        names[handle.name] = None
        if isinstance(answered, SkywardError):
            failures[handle.name] = answered
        else:
            found += [(handle, each) for each in answered]
    return Answers(found=tuple(found), asked=tuple(names), failures=failures, left_out=left_out)


async def tell_each(hook: str, argument: str, found: Iterable[tuple[ProviderHandle, Any]]) -> dict[str, SkywardError]:
    """
    Order providers to do something with what they listed, side by side, and return when they have confirmed it.

    Args:
        hook: The hook that does it.
        argument: Its argument that takes all that one provider listed.
        found: What is meant, each with the provider that lists it.

    Returns:
        Why providers could not, by name.
    """
    by_handle: dict[int, tuple[ProviderHandle, list[Any]]] = {}
    for handle, each in found:
        by_handle.setdefault(id(handle), (handle, []))[1].append(each)
    groups = list(by_handle.values())
    answers = await asyncio.gather(*(_tell(handle, hook, {argument: listed}) for handle, listed in groups))
    return {handle.name: error for (handle, _), error in zip(groups, answers, strict=True) if error is not None}


async def _ask(handle: ProviderHandle, hook: str, arguments: dict[str, Any]) -> Sequence[Any] | SkywardError:
    try:
        answered: Sequence[Any] = await handle.call(hook, timeout=PROVIDER_TIMEOUT, **arguments)
    except SkywardError as error:
        return error
    return answered


async def _tell(handle: ProviderHandle, hook: str, arguments: dict[str, Any]) -> SkywardError | None:
    try:
        await handle.call(hook, timeout=2 * PROVIDER_TIMEOUT, **arguments)
    except SkywardError as error:
        return error
    return None


def provider_handles(
    providers: Any = None, only: Collection[str] = ()
) -> tuple[list[ProviderHandle], list[ProviderHandle], dict[str, SkywardError]]:
    """
    Return the providers that are named, those that are just installed, and why some of them can't be made.

    Args:
        providers: A provider or several; None for those of the nearest `skyward.toml` and all that are installed.
        only: The names of those that are meant; none for all of them.

    Raises:
        ConfigError: If one of them is no provider, or there is none of that name.
    """
    if providers is not None:
        return given_handles(providers), [], {}
    installed, failures = installed_handles()
    named: list[ProviderHandle] = []
    try:
        named += map(ProviderHandle, providers_of_file(provider_of=provider, plugin_of=plugin))
    except SkywardError as error:
        failures["skyward.toml"] = error
    once = {source_of(handle): handle for handle in named}
    others = [handle for handle in installed if source_of(handle) not in once]
    if not only:
        return list(once.values()), others, failures
    known = {handle.name for handle in (*once.values(), *others)} | {
        name.lower() for name in (*failures, *installed_providers())
    }
    meant = {_known(name, known) for name in only}
    failed = {name: error for name, error in failures.items() if name.lower() in meant or name == "skyward.toml"}
    return (
        [handle for handle in once.values() if handle.name in meant],
        [handle for handle in others if handle.name in meant],
        failed,
    )


def _known(name: str, known: Collection[str]) -> str:
    """Return the name of a provider, in the case that it has, or refuse it."""
    if name.lower() in known:
        return name.lower()
    close = nearest(name, known)
    raise ConfigError(
        f"No provider is called {name!r} here.",
        hint=f"Did you mean {close!r}?" if close else "Type: sky providers",
    )
