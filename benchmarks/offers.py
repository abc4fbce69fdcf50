"""
Times the catalogue of offers: a question to many rows, the first look and the ones after it.

usage: python benchmarks/offers.py [--rows 100000]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from attrs import field, frozen

import skyward as sky
from skyward.hookspecs import Offer, ProviderFacts, hookimpl
from skyward.model.accelerators.catalogue import CATALOGUE

SEED = 20
ROUNDS = 30
CLOUD = 4000
"""About what one region of a large cloud sells: its types times its zones."""


@frozen
class Simulated:
    """
    Sells machines drawn from a seed.
    """

    name: str
    rows: int
    asked: list[int] = field(factory=list, eq=False)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name=self.name, ends_own_bill=True, offers_ttl_s=3600)

    @hookimpl
    async def skyward_offers(self) -> Any:
        return drawn(self.name, self.rows)

    @hookimpl
    async def skyward_launch(self) -> Any:
        raise NotImplementedError

    @hookimpl
    async def skyward_instances(self) -> Any:
        raise NotImplementedError

    @hookimpl
    async def skyward_terminate(self) -> Any:
        raise NotImplementedError


def drawn(provider: str, rows: int) -> list[Offer]:
    """
    Draw offers: every device of the catalogue, in many sizes, regions and prices.
    """
    draw = random.Random(f"{SEED} {provider}")
    devices = list(CATALOGUE)
    found = []
    for number in range(rows):
        device = draw.choice(devices)
        price = draw.uniform(0.1, 100)
        found.append(
            Offer(
                provider=provider,
                instance_type=f"type-{number % 1500}",
                region=f"region-{number % 20}",
                zone=f"zone-{number % 60}",
                accelerator_name=device.name,
                accelerator_count=draw.choice((1, 2, 4, 8)),
                accelerator_memory_gb=device.memory_gb,
                vcpus=draw.choice((4, 16, 64, 192)),
                memory_gb=draw.choice((16, 64, 256, 2048)),
                architecture="x86_64",
                spot_price=price / 3 if draw.random() < 0.7 else None,
                on_demand_price=price,
                data={"number": number},
            )
        )
    return found


def timed(do: Callable[[], Any], rounds: int = 1) -> str:
    """
    Time something, and say the median and the slowest in milliseconds.
    """
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        do()
        times.append((time.perf_counter() - started) * 1000)
    slowest = f" (slowest {max(times):.1f})" if rounds > 1 else ""
    return f"{statistics.median(times):8.1f} ms{slowest}"


def main() -> None:
    """
    Print every figure in a line of its own.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    print(f"seed {SEED}, Python and SQLite as installed, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SKYWARD_CACHE"] = cache
        many, cloud = sky.offers([Simulated("many", rows)]), sky.offers([Simulated("cloud", CLOUD)])
        print(f"first look, {rows} offers asked for and kept   {timed(lambda: many.select().limit(1).all())}")
        print(f'accelerator("H100").spot().cheapest(5)        {timed(lambda: question(many), ROUNDS)}')
        print(f"count() of all                                {timed(many.select().count, ROUNDS)}")
        print(f"first look, {CLOUD} offers                      {timed(cloud.select().all)}")
        print(f"cached catalogue, all {CLOUD} offers            {timed(cloud.select().all, ROUNDS)}")
        print(f'cached catalogue, all of accelerator("H100")  {timed(cloud.accelerator("H100").all, ROUNDS)}')


def question(offers: Any) -> None:
    """
    Ask for the five cheapest H100.
    """
    assert 5 == len(offers.accelerator("H100").spot().cheapest(5))


if __name__ == "__main__":
    main()
