"""What a pool registers in an account, such as its SSH key: made once, found again, removed with the pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from skyward.errors import SkywardError
from skyward.rest.reply import is_lost

__all__ = ["Registered", "key_material", "registered"]

TRIES = 3
"""Calls to register something whose answers are lost."""


@frozen(kw_only=True)
class Registered:
    """
    Name what is registered.

    Args:
        id: Its id, or a key's fingerprint.
        own: Whether the pool registered it, so that it is removed with the pool.
    """

    id: str
    own: bool = True


async def registered(
    create: Callable[[], Awaitable[str]], find: Callable[[], Awaitable[Registered | None]], *, unique: bool
) -> Registered:
    """
    Register something, unless it is there already; an answer that was lost is followed by a look.

    Args:
        create: Registers it, and returns its id.
        find: Looks for it; None where it is not there.
        unique: Whether the cloud refuses a second one of the same, so that a look is needed after a refusal only.

    Raises:
        SkywardError: If it is refused.
    """
    refusal: SkywardError | None = None
    for _ in range(TRIES):
        if (not unique or refusal is not None) and (found := await find()) is not None:
            return found
        try:
            return Registered(id=await create())
        except SkywardError as error:
            if not is_lost(error):
                if unique and (found := await find()) is not None:
                    return found
                raise
            refusal = error
    assert refusal is not None
    raise refusal


def key_material(line: object) -> tuple[str, ...]:
    """
    Return the algorithm and body of a public key, without its comment; empty if it is none.

    Args:
        line: The key, as a line of a file of authorized keys.

    >>> key_material("ssh-ed25519 AAAA me@here")
    ('ssh-ed25519', 'AAAA')
    """
    return tuple(line.split()[:2]) if isinstance(line, str) else ()
