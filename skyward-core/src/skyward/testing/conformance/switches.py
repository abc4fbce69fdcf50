"""Faults that a test cloud can inject, so that a provider is also checked on a bad day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import field, frozen

from skyward.hookspecs import Offer

__all__ = ["BookedInstance", "Switches"]


def _nothing() -> None:
    """Return nothing."""


@frozen(kw_only=True)
class BookedInstance:
    """
    Describe one instance as the test cloud's own books have it.

    Args:
        id: Its id, as the provider names it.
        billed: Whether it is billed now.
        region: Where it is; None where the books do not say.
        instance_type: Its type; None where the books do not say.
        spot: Whether it may be reclaimed; None where the books do not say.

    >>> BookedInstance(id="i-1", billed=True, region="north").billed
    True
    """

    id: str
    billed: bool
    region: str | None = None
    instance_type: str | None = None
    spot: bool | None = None


@frozen(kw_only=True)
class Switches:
    """
    Hold the switches of a test cloud; one that it lacks is None, and the checks that need it are skipped.

    Args:
        books: Return every instance that was ever launched.
        no_capacity: Refuse launches because no instance is left.
        no_quota: Refuse launches because the account has reached its limit.
        no_login: Refuse the account's credentials.
        lose_answer: Carry out the next launch, and lose its answer.
        few_left: Leave fewer instances of an offer than can be asked for; returns for how many nodes to ask.
        refuse_end: Answer the next call that terminates with an error, and terminate nothing.
        break_lists: Answer calls that list instances with an error.
        small_pages: Have lists show one row a page; does nothing where the API has no pages.
        fail_boots: Have the instances fail that are launched from now on; they never run.
        reclaim: Take an instance away, by its id.
        impersonate: Have the instances prove themselves by another host key that are launched from now on.
        slow: Answer each call so many seconds later.
        sell_out: Have no instance left of an offer.
        raise_price: Sell an offer at another price.
        remains: Return the names of what is left that is no instance, such as keys.
        shows_stock: Whether the API's own list of what is sold shows that nothing is left of an offer.
        ttl: A `ttl` of a pool after which an instance terminates itself soon enough for a test.
        calm: Forget all of this.

    >>> Switches().books is None
    True
    """

    books: Callable[[], Iterable[BookedInstance]] | None = None
    no_capacity: Callable[[], Any] | None = None
    no_quota: Callable[[], Any] | None = None
    no_login: Callable[[], Any] | None = None
    lose_answer: Callable[[], Any] | None = None
    few_left: Callable[[Offer], int] | None = None
    refuse_end: Callable[[], Any] | None = None
    break_lists: Callable[[], Any] | None = None
    small_pages: Callable[[], Any] | None = None
    fail_boots: Callable[[], Any] | None = None
    reclaim: Callable[[str], Any] | None = None
    impersonate: Callable[[], Any] | None = None
    slow: Callable[[float], Any] | None = None
    sell_out: Callable[[Offer], Any] | None = None
    raise_price: Callable[[Offer], Any] | None = None
    remains: Callable[[], Iterable[str]] | None = None
    shows_stock: bool = False
    ttl: float | None = None
    calm: Callable[[], Any] = field(default=_nothing)
