"""Ask the providers what they sell, and decide which spec is tried first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from skyward.blocking import in_thread
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import SkywardError
from skyward.model.spec.options import Options
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import choose as matching
from skyward.plan.offers.selection import ProviderView, as_chosen, in_order

_log = logging.getLogger(__name__)

OFFERS_TIMEOUT = 60.0
"""Seconds that a provider has to say what it sells."""


async def choose(specs: Sequence[Spec], options: Options) -> tuple[Spec, ...]:
    """
    Return the specs in the order to try.

    All providers are asked side by side; one that fails sells nothing, and says why in the log.

    Raises:
        ConfigError: If a selection function returns what it was not given.
    """
    if len(specs) == 1 or options.selection == "first":
        return tuple(specs)
    views = await asyncio.gather(*map(_view, specs))
    if callable(options.selection):
        # The user's code may take its time; the loop may not.
        chosen = await in_thread(options.selection, tuple(views), specs[0])
        return tuple(view.spec for view in as_chosen(views, chosen))
    return tuple(view.spec for view in in_order(views, options.selection))


async def _view(spec: Spec) -> ProviderView:
    handle = ProviderHandle(spec.provider)
    try:
        offers = await handle.call("skyward_offers", spec=spec, timeout=OFFERS_TIMEOUT)
    except SkywardError as error:
        _log.warning("offers.failed provider=%s reason=%s", handle.name, error)
        offers = ()
    choice = matching(spec, offers or ())
    fitting = {id(made.offer): made.offer for made in (*choice.spot, *choice.on_demand)}
    return ProviderView(name=handle.name, provider=spec.provider, spec=spec, offers=fitting.values())
