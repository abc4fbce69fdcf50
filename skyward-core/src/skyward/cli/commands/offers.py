"""`sky offers`: what providers sell now, side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.machines import add_providers, complain_of
from skyward.cli.terminal import add_json, quiet, say, say_json, table
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.market.query import Query
    from skyward.market.repository import Offers
    from skyward.model.instances.offer import Offer

MOST = 20
"""Offers that are shown unless it is said otherwise."""

_LOGS = ("skyward.market.repository", "skyward.market.handles")


def arguments(parser: ArgumentParser) -> None:
    """Add what offers are chosen and ordered by."""
    parser.add_argument("--gpu", metavar="GPU", help="with these accelerators, such as H100 or H100:8")
    parser.add_argument("--cpu-only", action="store_true", help="without accelerators")
    add_providers(parser)
    parser.add_argument("--region", metavar="REGION", help="in this region, as its provider calls it")
    parser.add_argument("--vcpus", type=float, metavar="N", help="with so many virtual CPUs at least")
    parser.add_argument("--memory", metavar="GB", help="with so much memory at least, such as 64GB")
    parser.add_argument("--max-price", type=float, metavar="USD", help="that cost no more than this an hour")
    parser.add_argument("--spot", action="store_true", help="sold as spot, and ordered by that price")
    parser.add_argument("--on-demand", action="store_true", help="sold on demand, and ordered by that price")
    parser.add_argument(
        "--sort",
        default="price",
        metavar="FIELD",
        help="price, vcpus, memory_gb, ...; --sort=-vcpus: the most first",
    )
    parser.add_argument("--limit", type=int, default=MOST, metavar="N", help=f"so many at most; {MOST}, 0 for all")
    add_json(parser)


def run(options: Namespace) -> int:
    """
    List the offers; fail if a provider cannot be asked, for what it sells is not known then.

    Raises:
        ConfigError: If what is asked for cannot be.
    """
    from skyward.cli.json_facts import answered, offer_facts
    from skyward.cli.sold_table import HEADER, row
    from skyward.errors import AllProvidersFailedError
    from skyward.market.asking import provider_handles
    from skyward.market.repository import Offers

    # What they could not be asked for is said once, below.
    with quiet(*_LOGS):
        named, installed, failures = provider_handles(only=options.providers)
        market = Offers([*named, *installed], failures)
        try:
            found: list[Offer] = list(_query(market, options).all())
        except AllProvidersFailedError:
            found = []
    if options.json:
        say_json(answered("offers", map(offer_facts, found), market.providers, market.failures))
    elif found:
        say(table([HEADER, *map(row, found)], indent=""))
        if len(found) == options.limit:
            say(f"These are the first {options.limit}. For all of them: --limit 0")
    elif answering := [name for name in market.providers if name not in market.failures]:
        say(f"{', '.join(answering)}: no offer found.")
    return complain_of(market.failures)


def _query(market: Offers, options: Namespace) -> Query:
    """Return the question that was typed."""
    query = market.select()
    if options.gpu is not None:
        query = query.accelerator(options.gpu)
    if options.cpu_only:
        query = query.cpu_only()
    if options.region is not None:
        query = query.region(options.region)
    if options.vcpus is not None:
        query = query.vcpus(options.vcpus)
    if options.memory is not None:
        query = query.memory(float(options.memory) if options.memory.isdigit() else options.memory)
    if options.spot:
        query = query.spot()
    if options.on_demand:
        query = query.on_demand()
    if options.max_price is not None:
        query = query.max_price(options.max_price)
    query = query.order_by(options.sort)
    return query.limit(options.limit) if options.limit else query


COMMAND = Command(run, summary="List what providers sell now, with prices, side by side.", arguments=arguments)
