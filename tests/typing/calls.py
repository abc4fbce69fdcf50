"""What a type checker sees in users' code; `tests/test_typing.py` has mypy check it, nothing runs it."""

from __future__ import annotations

import concurrent.futures
from collections.abc import AsyncIterator, Generator, Iterator
from typing import assert_type

import skyward as sky
from skyward.engine.calls.streamed_results import Results
from skyward.hookspecs import Offer


@sky.function
def whole(x: int) -> int:
    return x


@sky.function(timeout=60, retries=2)
def text(x: int) -> str:
    return str(x)


@sky.function
async def later(x: int) -> float:
    return float(x)


@sky.function
def rows(n: int) -> Iterator[str]:
    yield str(n)


@sky.function
def generated(n: int) -> Generator[int, None, None]:
    yield n


@sky.function
async def events(n: int) -> AsyncIterator[bytes]:
    yield bytes(n)


@sky.function
def both(x: int, y: str) -> float:
    return x + float(y)


@sky.function
def three(x: int, y: int, z: int) -> str:
    return str(x + y + z)


def pow_of(x: int, y: int) -> int:
    return x * y


class Model:
    @sky.function
    def score(self, x: int, *, scale: float = 1.0) -> float:
        return x * scale


@sky.cls
class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    @sky.function
    def add(self, times: int) -> int:
        return self.count + times

    @sky.function(timeout=5)
    def name(self) -> str:
        return "counter"

    @sky.function
    def each(self) -> Iterator[int]:
        yield self.count

    def plain(self) -> int:
        return self.count


@sky.cls(on_loss="raise")
class Lasting:
    @sky.function
    def one(self) -> float:
        return 1.0


def operators(pool: sky.Pool) -> None:
    assert_type(whole(1) >> pool, int)
    assert_type(text(1) @ pool, list[str])
    assert_type((whole(1) > pool).result(), int)
    assert_type(whole(1) >> sky, int)
    assert_type(text(1).with_timeout(3) >> pool, str)
    assert_type(later(1) >> pool, float)
    assert_type(whole.local(1), int)
    assert_type(pool.run(text(1), target="head"), str)
    assert_type(pool.broadcast(whole(1)), list[int])


async def awaited(pool: sky.Pool) -> None:
    assert_type(await (text(1) > pool), str)
    async with sky.Compute() as other:
        assert_type(await (whole(1) > other), int)


def streams(pool: sky.Pool) -> None:
    assert_type(rows(1) >> pool, Iterator[str])
    assert_type(generated(1) >> pool, Iterator[int])
    assert_type(events(1) >> pool, Iterator[bytes])


def methods(pool: sky.Pool) -> None:
    assert_type(Model().score(1, scale=2.0) >> pool, float)
    assert_type(Model().score.local(1), float)


def classes(pool: sky.Pool) -> None:
    counter = Counter(3)
    assert_type(counter, Counter)
    assert_type(counter.add(1) >> pool, int)
    assert_type(counter.add(1) @ pool, list[int])
    assert_type((counter.name() > pool).result(), str)
    assert_type(counter.each() >> pool, Iterator[int])
    assert_type((counter.add(1) & counter.name()) >> pool, tuple[int, str])
    assert_type(pool.map(counter.add, [1, 2]), list[int])
    assert_type(Lasting().one() >> sky, float)


def groups(pool: sky.Pool) -> None:
    a, b = whole(1), text(1)
    assert_type((a & b) >> pool, tuple[int, str])
    assert_type((a & b & a) >> pool, tuple[int, str, int])
    assert_type((a & b & a & b) >> pool, tuple[int, str, int, str])
    assert_type((a & b & a & b & a) >> pool, tuple[int, str, int, str, int])
    assert_type((a & b & a & b & a & b) >> pool, tuple[int, str, int, str, int, str])
    assert_type((a & b & a & b & a & b & a) >> pool, tuple[int, str, int, str, int, str, int])
    assert_type((a & b & a & b & a & b & a & b) >> pool, tuple[int, str, int, str, int, str, int, str])
    assert_type(sky.gather(a) >> pool, tuple[int])
    assert_type(sky.gather(a, b) >> pool, tuple[int, str])
    assert_type(sky.gather(a, b, a, b, a, b, a, b) >> pool, tuple[int, str, int, str, int, str, int, str])
    assert_type(sky.gather(*[a, a]) >> pool, tuple[int, ...])
    assert_type(sky.gather(*[a, a], return_exceptions=True) >> pool, tuple[int | BaseException, ...])
    assert_type(sky.gather(a, a, stream=True) >> pool, Iterator[int])
    assert_type(sky.gather(a, a, stream=True, return_exceptions=True) >> pool, Iterator[int | BaseException])


def maps(pool: sky.Pool) -> None:
    assert_type(pool.map(whole, [1, 2]), list[int])
    assert_type(pool.map(str, [1, 2]), list[str])
    assert_type(pool.map(text, [1, 2], stream=True), Results[str])
    assert_type(pool.map(whole, [1, 2], return_exceptions=True), list[int | BaseException])
    assert_type(pool.map(str, [1, 2], return_exceptions=True), list[str | BaseException])
    assert_type(pool.map(text, [1, 2], stream=True, return_exceptions=True), Results[str | BaseException])
    assert_type(pool.map(both, [1], ["a"]), list[float])
    assert_type(pool.map(pow_of, [1], [2], stream=True), Results[int])
    assert_type(pool.map(both, [1], ["a"], strict=True, return_exceptions=True), list[float | BaseException])
    assert_type(pool.map(three, [1], [2], [3]), list[str])
    assert_type(pool.starmap(both, [(1, "a")]), list[float])
    assert_type(pool.starmap(pow_of, [(1, 2)], stream=True), Results[int])
    older: Iterator[str] = pool.map(text, [1, 2], stream=True)
    assert_type(next(older), str)
    with pool.executor() as executor:
        assert_type(executor.submit(pow_of, 1, 2).result(), int)
        assert_type(executor.map(pow_of, [1], [2]), Iterator[int])
        standard: concurrent.futures.Executor = executor
        assert_type(standard.submit(pow_of, 1, 2), concurrent.futures.Future[int])
    assert_type(pool.broadcast(whole(1)), list[int])
    assert_type(pool.broadcast(whole(1), return_exceptions=True), list[int | BaseException])


async def awaited_maps(pool: sky.Pool) -> None:
    async def items() -> AsyncIterator[int]:
        yield 1

    async for one in pool.map(text, items(), stream=True):
        assert_type(one, str)
    async with pool.map(pow_of, items(), [2], stream=True) as results:
        assert_type([one async for one in results], list[int])


@sky.pool(nodes=2, accelerator="T4", concurrency=4)
def main(steps: int) -> str:
    return text(steps) >> sky


def decorated() -> None:
    assert_type(main(3), str)
    with sky.MultiPool(sky.Compute(), sky.Compute()) as pools:
        assert_type(pools, tuple[sky.Pool, ...])


def offers() -> None:
    query = sky.offers([sky.Local()]).accelerator("H100").spot().max_price(20)
    listed: list[Offer] = query.all()
    few: list[Offer] = query.cheapest(5)
    number: int = query.count()
    assert_type(listed[0].spot_price or few[number].spot_price, float | None)


async def awaited_offers() -> None:
    offers = await sky.offers()
    query = offers.cpu_only().order_by("-vcpus")
    assert_type(await query.all(), list[Offer])
    assert_type(await query.cheapest(5), list[Offer])
    assert_type(await query.count(), int)


def kept(pool: sky.Compute) -> None:
    """A Ref knows what it stands for; a parameter says that it takes one."""
    numbers = pool.put([1, 2])
    assert_type(numbers, sky.Ref[list[int]])
    assert_type(sky.put("text"), sky.Ref[str])
    assert_type(numbers.get(), list[int])
    assert_type(total(numbers) >> pool, int)


@sky.function
def total(numbers: list[int] | sky.Ref[list[int]]) -> int:
    return len(numbers) if isinstance(numbers, list) else 0
