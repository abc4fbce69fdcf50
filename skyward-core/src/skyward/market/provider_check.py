"""Whether a provider can be used: its settings, credentials and permissions, asked for without renting anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.errors import SkywardError
from skyward.market.source import ask
from skyward.model.spec.spec import Spec

__all__ = ["Check", "check_provider"]


@frozen(kw_only=True)
class Check:
    """
    Hold what came of one question.

    Args:
        what: What was looked at.
        ok: Whether it is as it should be; None where that cannot be known.
        detail: What was found, or what is wrong.
    """

    what: str
    ok: bool | None
    detail: str


async def check_provider(handle: ProviderHandle) -> list[Check]:
    """
    Check a provider by the hooks that a pool calls before it rents anything; after a refusal nothing else is asked.

    Args:
        handle: The provider.
    """
    spec = Spec(provider=handle.provider)

    async def preflight() -> str:
        if not handle.implements("skyward_preflight"):
            return "it needs none"
        await handle.call("skyward_preflight", spec=spec, timeout=PROVIDER_TIMEOUT)
        return "accepted"

    async def offers() -> str:
        listed = await ask(handle, handle.now())
        there = sum(offer.available for offer in listed)
        return f"{len(listed)} kinds of machines, {there} of them available now"

    async def machines() -> str:
        listed = await handle.call("skyward_owned", timeout=PROVIDER_TIMEOUT)
        return f"{len(listed)} of ours are there"

    async def images() -> str:
        listed = await handle.call("skyward_machine_images", cluster=None, timeout=PROVIDER_TIMEOUT)
        return f"{len(listed)} of ours are kept"

    asked: list[tuple[str, str, Callable[[], Awaitable[str]]]] = [
        ("credentials", "skyward_preflight", preflight),
        ("list offers", "skyward_offers", offers),
        ("list machines", "skyward_owned", machines),
        ("list machine images", "skyward_machine_images", images),
    ]
    found: list[Check] = []
    for what, hook, question in asked:
        if hook in ("skyward_owned", "skyward_machine_images") and not handle.implements(hook):
            continue
        try:
            found.append(Check(what=what, ok=True, detail=await question()))
        except SkywardError as error:
            found.append(Check(what=what, ok=False, detail=str(error)))
            if hook == "skyward_preflight":
                return found
    return [*found, *await _clock(handle), *_quota(handle)]


async def _clock(handle: ProviderHandle) -> list[Check]:
    if not handle.implements("skyward_clock"):
        return []
    wrong = await handle.measure_clock()
    return [Check(what="clock", ok=not wrong, detail=wrong or f"{abs(handle.ahead):.0f} s from this computer's")]


def _quota(handle: ProviderHandle) -> list[Check]:
    facts: Any = handle.facts
    if not facts.rents:
        return []
    return [Check(what="quota", ok=None, detail="is counted by the provider when machines are rented")]
