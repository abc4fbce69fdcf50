"""Ask a provider on trial: every answer is recorded, every instance is terminated, and every wait has a time limit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

import attrs
import pytest
from attrs import evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import CapacityError, HostKeyError, QuotaError, TransportError
from skyward.hookspecs import Offer, ProviderFacts, SSHAddress
from skyward.model.spec.spec import Spec
from skyward.ssh.dial import dial
from skyward.testing.conformance.loop_watch import LoopWatch
from skyward.testing.conformance.rental import Rental
from skyward.testing.conformance.switches import BookedInstance, Switches

__all__ = ["Trial"]

OFFERS_TRIED = 10
"""Offers that are tried, the cheapest first, until one has an instance left."""

_LONGEST_PAUSE = 5.0


class Trial:
    """
    Ask one provider, and record all it says.

    Args:
        provider: The provider.
        hidden: Texts that it must never show.
        spec: What is asked for.
        patience: Seconds that an instance may take to run, or to be gone.
        switches: Faults that its test cloud can inject.
    """

    def __init__(
        self,
        provider: object,
        hidden: Sequence[str],
        spec: Spec,
        patience: float,
        switches: Switches | None = None,
    ) -> None:
        self.handle = ProviderHandle(provider)
        self.spec = evolve(spec, provider=provider)
        self.patience = patience
        self.switches = switches or Switches()
        self._hidden = list(hidden)
        self._heard = _Heard()
        self._runner = asyncio.Runner()
        self._watch = LoopWatch()
        self._root_level = logging.NOTSET
        for text in (repr(provider), str(provider), repr(self.spec)):
            self._heard.texts.append(text)

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._root_level = root.level
        root.addHandler(self._heard)
        root.setLevel(logging.DEBUG)
        self._watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.__exit__()
        root = logging.getLogger()
        root.removeHandler(self._heard)
        root.setLevel(self._root_level)
        self._runner.close()

    @property
    def facts(self) -> ProviderFacts:
        """Return the provider's facts."""
        return self.handle.facts

    @property
    def blocking(self) -> Sequence[str]:
        """Return the places that blocked the event loop."""
        return self._watch.blocking

    def has(self, hook: str) -> bool:
        """Return whether the provider implements a hook."""
        return hasattr(type(self.handle.provider), hook)

    def ask(self, hook: str, **arguments: Any) -> Any:
        """
        Call a hook, and return its answer.

        Raises:
            SkywardError: What the provider raises; a PluginError if that is none of Skyward's.
        """
        try:
            call = self.handle.call(hook, timeout=self.patience, **arguments)
            answer = self._runner.run(self._watch.over(call))
        except Exception as error:
            self._heard.texts += [str(error), repr(error), repr(vars(error))]
            raise
        self._heard.texts += [repr(answer), str(answer)]
        return answer

    @contextmanager
    def another_client(self) -> Iterator[None]:
        """Ask a provider with the same arguments for the block, which has launched nothing, as another client has."""
        before = self.handle
        if attrs.has(type(before.provider)):
            self.handle = ProviderHandle(evolve(before.provider))  # type: ignore[misc]
        try:
            yield
        finally:
            self.handle = before

    def shell(self, address: SSHAddress, command: str) -> str:
        """
        Run a command on an instance, as a pool would reach it, and return what it prints.

        A connection that ends with the command is none that failed.

        Raises:
            SkywardError: If it cannot be reached, or is not the one that it should be.
        """
        import asyncssh

        async def run() -> str:
            async with await dial(address, patience=self.patience, report=lambda _: None) as connection:
                with suppress(asyncssh.Error, OSError, TimeoutError, TransportError):
                    return str((await connection.run(command, timeout=self.patience)).stdout).strip()
            return ""

        return self._runner.run(run())

    def is_impostor(self, address: SSHAddress) -> bool:
        """Return whether an instance is refused for its host key, without waiting until it may have settled."""
        try:
            self.shell(evolve(address, settling_s=0.0), "true")
        except HostKeyError:
            return True
        return False

    def hide(self, *texts: str) -> None:
        """Add texts that the provider must never show."""
        self._hidden += texts

    def shown(self) -> list[str]:
        """Return what the provider showed of what it must hide: each text, with stars in the secret's place."""
        found = []
        for secret in self._hidden:
            found += [text.replace(secret, "*****") for text in self._heard.texts if secret in text]
        return found

    def until(self, holds: Callable[[], object], what: str) -> None:
        """
        Wait until a condition holds.

        Args:
            holds: The condition.
            what: What it is, for the message.
        """
        deadline, pause = time.monotonic() + self.patience, 0.05
        while not holds():
            assert time.monotonic() < deadline, f"After {self.patience:g} s still not true: {what}."
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)

    def switch(self, name: str) -> Callable[..., Any]:
        """
        Return a switch of the test cloud; the check is skipped where it has none of the name.

        Args:
            name: The field of `Switches`.
        """
        found: Callable[..., Any] | None = getattr(self.switches, name)
        if found is None:
            pytest.skip(f"The test cloud has no switch `{name}`, see skyward.testing.conformance.Switches.")
        return found

    @contextmanager
    def switched(self, name: str, *arguments: Any) -> Iterator[Any]:
        """
        Turn a switch of the test cloud on for the block, and yield what it returns.

        Args:
            name: The field of `Switches`.
            arguments: What it is given.
        """
        switch = self.switch(name)
        try:
            yield switch(*arguments)
        finally:
            self.switches.calm()

    def booked(self) -> dict[str, BookedInstance]:
        """Return the instances that are billed by the test cloud's own books, by id."""
        return {each.id: each for each in self.switch("books")() if each.billed}

    def ways(self) -> list[tuple[Offer, bool]]:
        """Return the ways to launch, the cheapest first: an offer, and whether as spot."""
        offers = [offer for offer in self.ask("skyward_offers", spec=self.spec) if offer.available]
        ways = [(offer, spot) for offer in offers for spot in (False, True) if offer.price(spot=spot) is not None]
        assert ways, "skyward_offers sells nothing that is available now and has a price."
        return sorted(ways, key=lambda way: way[0].price(spot=way[1]) or 0.0)

    @contextmanager
    def rental(self, *, nodes: int = 1, ways: Sequence[tuple[Offer, bool]] = ()) -> Iterator[Rental]:
        """
        Launch instances, the cheapest that can be had; terminate all of the pool when the block is left.

        Args:
            nodes: How many; there may be fewer, but one.
            ways: The ways to launch them; none for all that is offered.
        """
        reason: Exception | None = None
        for offer, spot in (ways or self.ways())[:OFFERS_TRIED]:
            rental = Rental(trial=self, offer=offer, spot=spot, nodes=nodes)
            with rental.opened():
                try:
                    rental.launch()
                except (CapacityError, QuotaError) as error:
                    reason = error
                    continue
                yield rental
                return
        raise AssertionError(f"None of the {OFFERS_TRIED} cheapest offers could be launched: {reason}") from reason


class _Heard(logging.Handler):
    """Record every record of every logger as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record a record."""
        self.texts.append(self.format(record))
