"""
A provider is asked in one place, with a time limit and its name in every error.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import field, frozen

from skyward.engine.instances.provider_handle import REQUIRED, ProviderHandle
from skyward.errors import CapacityError, OfferError, PluginError, ProvisionError, SkywardError
from skyward.hookspecs import ProviderFacts, hookimpl


@frozen(eq=True)
class Cloud:
    """A provider that answers as the test says, and cannot be hashed."""

    answer: Any = ()
    seen: list[Any] = field(factory=list)

    @property
    def balance(self) -> float:
        """Ask for what must not be asked for in passing."""
        raise AssertionError("nobody asked for the balance")

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="cloud", ends_own_bill=True)

    @hookimpl
    async def skyward_offers(self) -> Any:
        return await self._answer()

    @hookimpl
    async def skyward_launch(self) -> Any:
        return await self._answer()

    @hookimpl
    async def skyward_instances(self) -> Any:
        return self.answer

    @hookimpl
    async def skyward_terminate(self) -> Any:
        return self.answer

    async def _answer(self) -> Any:
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def offers(answer: Any, *, timeout: float = 5) -> Any:
    """Return what the provider's offers come back as."""
    return asyncio.run(ProviderHandle(Cloud(answer)).call("skyward_offers", timeout=timeout, spec=None))


def test_equal_and_unhashable_providers_have_handles_of_their_own() -> None:
    """Handles differ although the providers are equal, and no property of a provider is run."""
    one, other = ProviderHandle(Cloud()), ProviderHandle(Cloud())
    assert one.provider == other.provider
    assert one != other
    assert 2 == len({one, other})


@pytest.mark.parametrize("answer", [(), [], None, 0, "text"])
def test_an_answer_comes_back_as_it_is(answer: Any) -> None:
    """Empty answers are answers."""
    assert answer == offers(answer)


def test_an_error_of_skyward_gets_the_provider_s_name() -> None:
    """What a provider raises of our tree goes on as itself."""
    with pytest.raises(CapacityError, match="sold out") as caught:
        offers(CapacityError("All machines are sold out."))
    assert "cloud" == caught.value.provider


def test_any_other_error_is_the_provider_s_failure() -> None:
    """An exception that was not translated is reported to the author, with the cause."""
    with pytest.raises(PluginError, match="Provider 'cloud' failed in skyward_offers: KeyError: 'id'") as caught:
        offers(KeyError("id"))
    assert ("cloud", "cloud", "skyward_offers") == (caught.value.provider, caught.value.plugin, caught.value.hook)


@pytest.mark.parametrize(("hook", "kind"), [("skyward_offers", OfferError), ("skyward_launch", ProvisionError)])
def test_an_answer_that_does_not_come_is_not_waited_for(hook: str, kind: type[SkywardError]) -> None:
    """The limit ends the call, and the error tells provider, hook and limit."""

    async def call() -> None:
        handle = ProviderHandle(Cloud(asyncio.Event()))
        arguments = {"spec": None} if hook == "skyward_offers" else {"request": None, "infra": None}
        await handle.call(hook, timeout=0.01, **arguments)

    with pytest.raises(kind, match=rf"cloud gave no answer to {hook} within 0\.01 s"):
        asyncio.run(call())


def test_a_timeout_of_the_provider_s_own_is_no_limit_of_ours() -> None:
    """A TimeoutError from inside the hook is a failure of the provider."""
    with pytest.raises(PluginError, match="Provider 'cloud' failed in skyward_offers: TimeoutError"):
        offers(TimeoutError("the cloud"))


@pytest.mark.parametrize("hook", REQUIRED)
def test_a_provider_that_lacks_a_hook_is_told_which(hook: str) -> None:
    """What is no provider is refused before anything is asked."""
    lacking = type("Lacking", (Cloud,), {hook: None})
    with pytest.raises(PluginError, match=f"Lacking is no provider: it lacks {hook}"):
        ProviderHandle(lacking())


def test_provider_hooks_are_coroutine_functions() -> None:
    """A plain function where core awaits is refused before anything is asked."""

    class Blocking(Cloud):
        @hookimpl
        def skyward_offers(self) -> list[Any]:  # type: ignore[override]
            return []

    with pytest.raises(PluginError, match="skyward_offers of Blocking must be an `async def`"):
        ProviderHandle(Blocking())


def test_facts_have_to_be_facts() -> None:
    """A provider that tells something else about itself is refused."""

    class Vague(Cloud):
        @hookimpl
        def skyward_facts(self) -> Any:
            return {"name": "vague"}

    with pytest.raises(PluginError, match=r"skyward_facts of Vague must return ProviderFacts, not \{'name'"):
        ProviderHandle(Vague())
