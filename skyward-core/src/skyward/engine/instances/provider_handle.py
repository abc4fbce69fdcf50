"""
How core asks a provider: in one place, with a time limit and the provider's name in every error.
"""

from __future__ import annotations

import asyncio
import math
import time
from inspect import iscoroutinefunction
from typing import Any

from skyward.errors import OfferError, PluginError, ProvisionError, SkywardError
from skyward.hook_callers import hook_callers
from skyward.model.instances.machine import ProviderFacts
from skyward.plan.instances.clocks import warning

__all__ = ["ProviderHandle"]

REQUIRED = ("skyward_facts", "skyward_offers", "skyward_launch", "skyward_instances", "skyward_terminate")
"""Hooks that a provider cannot do without."""

_CLOCK_TIMEOUT = 5.0
_BEFORE_RENTING = {"skyward_preflight", "skyward_offers", "skyward_open", "skyward_volume_storage"}


class ProviderHandle:
    """
    Ask one provider.

    Providers are values: two of them may be equal, and none has to be hashable. A handle is equal to itself only.

    Args:
        provider: The provider.

    Raises:
        PluginError: If it lacks a hook that is required, or has one that does not exist or is no coroutine function.
    """

    def __init__(self, provider: object) -> None:
        self.provider = provider
        cls = type(provider).__name__
        self._hooks = hook_callers(provider, cls)
        missing = [hook for hook in REQUIRED if not self.implements(hook)]
        if missing:
            raise PluginError(
                f"{cls} is no provider: it lacks {', '.join(missing)}.",
                plugin=cls,
                hint="skyward.hookspecs says what each of them does.",
            )
        for caller in self._hooks.get_hookcallers(self._hooks.get_plugin(cls)) or ():
            if caller.name != "skyward_facts" and not iscoroutinefunction(caller.get_hookimpls()[0].function):
                raise PluginError(f"{caller.name} of {cls} must be an `async def`.", plugin=cls, hook=caller.name)
        self.facts = self._facts(cls)
        self.ahead = 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.provider!r}>"

    @property
    def name(self) -> str:
        """Return the provider's name."""
        return self.facts.name

    async def call(self, hook: str, /, *, timeout: float, **arguments: Any) -> Any:
        """
        Call a hook of the provider and wait for its answer.

        Args:
            hook: Its name.
            timeout: How long to wait, in seconds.
            arguments: All arguments of the hook.

        Returns:
            The answer; None if the provider does without the hook.

        Raises:
            SkywardError: As the provider raises it, with its name.
            OfferError: If there is no answer in time, and nothing can be rented yet.
            ProvisionError: If there is no answer in time to anything else.
            PluginError: If the provider raises anything else.
        """
        if not self.implements(hook):
            return None
        waiting = asyncio.timeout(timeout)
        try:
            async with waiting:
                return await getattr(self._hooks.hook, hook)(**arguments)
        except SkywardError as error:
            error.provider = error.provider or self.name
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and waiting.expired():
                kind = OfferError if hook in _BEFORE_RENTING else ProvisionError
                raise kind(f"{self.name} gave no answer to {hook} within {timeout:g} s.", provider=self.name) from error
            raise _failure(self.name, hook, error) from error

    async def measure_clock(self) -> str:
        """
        Measure how far the provider's clock is from ours, by its last answers.

        Returns:
            A warning, if ours is wrong.
        """
        try:
            ahead = await self.call("skyward_clock", timeout=_CLOCK_TIMEOUT)
        except SkywardError:
            ahead = None
        if isinstance(ahead, int | float) and math.isfinite(ahead):
            self.ahead = ahead
        return warning(self.ahead, self.name)

    def now(self) -> float:
        """Return the time by the provider's clock, in seconds since 1970."""
        return time.time() + self.ahead

    def implements(self, hook: str) -> bool:
        """Return whether the provider has a hook."""
        return bool(getattr(self._hooks.hook, hook).get_hookimpls())

    def _facts(self, cls: str) -> ProviderFacts:
        try:
            facts = self._hooks.hook.skyward_facts()
        except Exception as error:
            raise _failure(cls, "skyward_facts", error) from error
        if not isinstance(facts, ProviderFacts):
            raise PluginError(
                f"skyward_facts of {cls} must return ProviderFacts, not {facts!r}.", plugin=cls, hook="skyward_facts"
            )
        return facts


def _failure(name: str, hook: str, error: Exception) -> PluginError:
    """Return the error that blames a provider."""
    return PluginError(
        f"Provider {name!r} failed in {hook}: {type(error).__name__}: {error}.", plugin=name, hook=hook, provider=name
    )
