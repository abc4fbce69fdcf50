"""What Verda sells now: types, and what is left of each market in each location."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skyward.provider import Api, Offer, check_places, text, together, unknown_name
from skyward_verda.catalogue import Stock, read_stock, to_offers
from skyward_verda.failure import read_list

if TYPE_CHECKING:
    from skyward.provider import Spec

__all__ = ["find_offers", "refuse_unknown_places"]


async def find_offers(api: Api, spec: Spec, places: Sequence[str]) -> Sequence[Offer]:
    """
    List what is sold: an offer for each type in each location.

    Args:
        api: The API.
        spec: What is asked for.
        places: The locations to look at; none for all.

    Raises:
        ConfigError: If the spec names a type that does not exist.
        SkywardError: If Verda refuses.
    """
    kinds, on_demand, spot, known = await together(
        # Without a currency, prices may be in euro.
        api.get("/instance-types", params={"currency": "usd"}, read=read_list),
        _stock(api, spot=False),
        _stock(api, spot=True),
        _places(api),
    )
    here = list(places) or list(dict.fromkeys((*known, *on_demand, *spot)))
    seen = time.time()
    found = api.understood(kinds, lambda rows: to_offers(rows, on_demand, spot, here, seen), "GET /instance-types")
    if spec.machine is None:
        return found
    names = list(dict.fromkeys(offer.instance_type for offer in found))
    if spec.machine not in names:
        raise unknown_name(f"Verda has no instance type {spec.machine!r}", spec.machine, names, provider="verda")
    return [offer for offer in found if offer.instance_type == spec.machine]


async def refuse_unknown_places(api: Api, places: Sequence[str]) -> None:
    """
    Refuse a location that there is not.

    Args:
        api: The API.
        places: The locations.

    Raises:
        ConfigError: If there is no such location.
    """
    check_places(places, await _places(api), provider="verda", title="Verda", noun="location")


async def _places(api: Api) -> list[str]:
    return [text(row, "code") for row in await api.get("/locations", read=read_list)]


async def _stock(api: Api, *, spot: bool) -> Stock:
    # Official clients spell the flag in two ways, and who ignores it says what is left of the other market.
    flag = "true" if spot else "false"
    return await api.get("/instance-availability", params={"isSpot": flag, "is_spot": flag}, read=read_stock)
