"""
A pool for the time of each call of a function.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack

from skyward.model.fields.keywords import PoolKeywords
from skyward.model.spec.options import Options
from skyward.model.spec.spec import Spec
from skyward.pool import Pool
from skyward.wrapping import keeping

P = ParamSpec("P")
T = TypeVar("T")


def pool(
    *specs: Spec, name: str | None = None, options: Options | None = None, **keywords: Unpack[PoolKeywords]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """
    Open a pool for the time of each call of a function; inside, `sky` is the pool.

    Args:
        specs: As for `Compute`.
        name: As for `Compute`.
        options: As for `Compute`.
        keywords: As for `Compute`.

    >>> import skyward as sky
    >>> @sky.function
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> @sky.pool(console="silent")
    ... def main() -> int:
    ...     return double(4) >> sky
    >>> main()
    8
    """
    Pool(*specs, name=name, options=options, **keywords)

    def decorate(fn: Callable[P, T]) -> Callable[P, T]:
        if asyncio.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def run_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                kept: list[Any] = []
                with keeping(kept):
                    async with Pool(*specs, name=name, options=options, **keywords):
                        kept.append(await fn(*args, **kwargs))
                return kept[0]

            return run_async  # type: ignore[return-value]  # the same signature, asynchronous as `fn` is

        @functools.wraps(fn)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            kept: list[T] = []
            with keeping(kept), Pool(*specs, name=name, options=options, **keywords):
                kept.append(fn(*args, **kwargs))
            return kept[0]

        return run

    return decorate
