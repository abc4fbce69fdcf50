"""What is known of a pool that has a stored log, and which of several is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import frozen

from skyward.errors import SkywardError
from skyward.model.fields.setting import nearest

__all__ = ["PoolState", "StoredPool", "chosen", "stored_pool"]

PoolState: TypeAlias = Literal["open", "ended", "failed", "detached", "died"]


@frozen(kw_only=True)
class StoredPool:
    """
    Say what is known of a pool that has a stored log.

    Args:
        id: The pool's id.
        name: What the user calls it.
        began: When it was opened, in seconds since 1970.
        provider: What it was to be rented from.
        what: What it was to be made of, in words.
        run: How often it was opened or attached.
        host: The computer of its program.
        process: The id of that process.
        ended: When it ended, in seconds since 1970; None while it is open, or if its program died.
        state: Whether it is open, or how it ended; `"died"` is the end of its program without an end of the pool.
        reason: Why it ended, in words.
        receipts: The receipts of its runs, as plain values.
        path: Its folder.
    """

    id: str
    name: str
    began: float
    provider: str = ""
    what: str = ""
    run: int = 1
    host: str = ""
    process: int = 0
    ended: float | None = None
    state: PoolState = "died"
    reason: str = ""
    receipts: tuple[Mapping[str, Any], ...] = ()
    path: str = ""


def stored_pool(
    facts: Mapping[str, Any], ends: Sequence[Mapping[str, Any]], *, lives: bool, path: str = ""
) -> StoredPool:
    """
    Return what the files of a pool say of it.

    Args:
        facts: What `pool.json` has.
        ends: What the ends of its runs have, in order.
        lives: Whether a program has the pool open.
        path: Its folder.

    Raises:
        ValueError: If it cannot be read: something is missing, or of another kind.

    >>> stored_pool({"id": "3fa9", "name": "train", "began": 5.0, "run": 1}, [], lives=True).state
    'open'
    """
    try:
        run = int(facts["run"])
        last = next((end for end in ends if end.get("run") == run), None)
        state: Any = "open" if lives and last is None else "died" if last is None else last["how"]
        return StoredPool(
            id=str(facts["id"]),
            name=str(facts["name"]),
            began=float(facts["began"]),
            provider=str(facts.get("provider", "")),
            what=str(facts.get("what", "")),
            run=run,
            host=str(facts.get("host", "")),
            process=int(facts.get("process", 0)),
            ended=None if last is None else float(last["ended"]),
            state=state,
            reason="" if last is None else str(last.get("reason", "")),
            receipts=tuple(end["receipt"] for end in ends if end.get("receipt")),
            path=path,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks or garbles {error}") from error


def chosen(pools: Sequence[StoredPool], word: str | None) -> StoredPool:
    """
    Return the pool that a word means: by its id, its name (then the newest), or the only one that begins so.

    Args:
        pools: All there are, newest first.
        word: What was typed; None means the newest.

    Raises:
        SkywardError: If there is none, with the nearest name, or several are meant.

    >>> pools = [StoredPool(id="3fa9", name="train", began=2.0), StoredPool(id="77c0", name="train", began=1.0)]
    >>> chosen(pools, "train").id, chosen(pools, "77").id
    ('3fa9', '77c0')
    """
    if not pools:
        raise SkywardError(
            "No pool has a stored log here.", hint="A pool writes one unless logging=False turns it off."
        )
    if word is None:
        return pools[0]
    exact = [pool for pool in pools if pool.id == word] or [pool for pool in pools if pool.name == word]
    if exact:
        return exact[0]
    begun = [pool for pool in pools if pool.id.startswith(word) or pool.name.startswith(word)] if word else []
    if len({pool.name for pool in begun}) == 1 and not any(pool.id.startswith(word) for pool in begun):
        return begun[0]
    if len(begun) == 1:
        return begun[0]
    if begun:
        some = ", ".join(f"{pool.name} ({pool.id})" for pool in begun[:5])
        raise SkywardError(f"{word!r} may be any of {len(begun)} pools: {some}.", hint="Type more of the id.")
    near = nearest(word, [name for pool in pools for name in (pool.name, pool.id)])
    raise SkywardError(
        f"No pool {word!r} has a stored log here.",
        hint=f"Did you mean {near!r}?" if near else "Type: sky logs --list",
    )
