"""Ending machines until the cloud says that they are gone: an answer to an order to end is no end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from skyward.errors import CredentialsError, ProvisionError, SkywardError

__all__ = ["ENDING", "end_for_good"]

ENDING = 90.0
"""Seconds that a cloud has to confirm an end."""

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 3.0


async def end_for_good(
    ids: Iterable[str],
    *,
    end: Callable[[str], Awaitable[object]],
    left: Callable[[Sequence[str]], Awaitable[Collection[str]]],
    provider: str,
    hint: str,
    within: float = ENDING,
) -> None:
    """
    End machines, and return when none of them is billed any more; what could not be ended is ended again.

    Args:
        ids: The machines.
        end: Orders the end of one; one that is gone already is no error.
        left: Returns which of some are still billed; where it fails, all of them may be.
        provider: The provider's name.
        hint: What to type where one cannot be ended; `{ids}` stands for those.
        within: Seconds that all this may take.

    Raises:
        ProvisionError: If one may go on being billed; its id is in the message.
    """
    there, give_up_at, wait = list(dict.fromkeys(ids)), time.monotonic() + within, _FIRST_WAIT
    while there:
        asked = await asyncio.gather(*(_tried(end(each)) for each in there))
        last = next((error for error in asked if error is not None), None)
        try:
            still = await left(there)
        except SkywardError as error:
            last = error
        else:
            there = [each for each in there if each in still]
        if there and (isinstance(last, CredentialsError) or time.monotonic() + wait > give_up_at):
            why = f": {last}" if last is not None else "."
            raise ProvisionError(
                f"{', '.join(there)} may still be running and billed{why}",
                provider=provider,
                hint=hint.replace("{ids}", " ".join(there)),
            ) from last
        if there:
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))
            wait = min(_LONGEST_WAIT, 2 * wait)


async def _tried(order: Awaitable[object]) -> SkywardError | None:
    """Return why an order was refused; None if it was taken."""
    try:
        await order
    except SkywardError as error:
        return error
    return None
