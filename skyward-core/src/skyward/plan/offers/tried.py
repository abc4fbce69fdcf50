"""
What is said when everything that a pool could ask for was tried: why in the first line, and then each attempt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from skyward.plan.offers.choice import Choice, Kind, Refusal

__all__ = ["each", "tried", "unasked"]

_WORDS: dict[Kind, str] = {"capacity": "had no capacity", "quota": "were over the quota", "failed": "failed"}


def each(reasons: Sequence[tuple[str, str]]) -> str:
    """
    Return why several providers failed: the first in the first line, and then all of them.

    Args:
        reasons: Their names and what each said.

    >>> print(each([("aws", "There are no credentials.")]))
    aws: There are no credentials.
    >>> print(each([("aws", "There are no credentials."), ("local", "It is full.")]))
    aws: There are no credentials. 1 other failed too:
      aws: There are no credentials.
      local: It is full.
    """
    name, reason = reasons[0]
    if len(reasons) == 1:
        return f"{name}: {reason}"
    more = "1 other failed too" if len(reasons) == 2 else f"{len(reasons) - 1} others failed too"
    listed = "".join(f"\n  {name}: {reason}" for name, reason in reasons)
    return f"{name}: {reason.splitlines()[0]} {more}:{listed}"


def tried(refusals: Sequence[Refusal], choice: Choice) -> str:
    """
    Return what was tried without success, each way to rent once, and what comes nearest of the rest.

    Nothing may have been tried: what was for sale a moment ago can be gone when it is looked for again.

    Args:
        refusals: What was refused, in order.
        choice: What the provider sells.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.plan.offers.choice import Candidate
    >>> small = Candidate(offer=Offer(provider="x", instance_type="small"), spot=False, price=0.1)
    >>> refusal = Refusal(candidate=small, kind="capacity", reason="None is left.", at=0.0)
    >>> print(tried([refusal], Choice()))
    small, on demand at $0.1/h: None is left.
    >>> tried([], Choice())
    'Nothing is left to try. It sells nothing at this moment.'
    """
    last = {str(refusal.candidate): refusal for refusal in refusals}
    rest = ""
    if choice.unasked:
        rest = f"\n{unasked(choice)}"
    elif choice.rejections:
        rest = f"\nNot tried: {choice.why_not}"
    elif choice.others:
        rest = f"\nNot tried: {min(choice.others, key=lambda made: made.price)}."
    lines = [f"{name}: {refusal.reason}{_limit(refusal)}" for name, refusal in last.items()]
    if not lines:
        return f"Nothing is left to try.{rest or f' {choice.why_not}'}"
    if len(lines) == 1:
        return f"{lines[0]}{rest}"
    counted = Counter(refusal.kind for refusal in last.values())
    if len(counted) == 1:
        what = f"all {len(lines)} offers {_WORDS[next(iter(counted))]}"
    else:
        what = f"of {len(lines)} offers {', '.join(f'{count} {_WORDS[kind]}' for kind, count in counted.most_common())}"
    return f"{what}, such as {lines[0]}\nTried:{''.join(f'{chr(10)}  {line}' for line in lines)}{rest}"


def unasked(choice: Choice) -> str:
    """
    Return what was not rented because nothing asks for it, what it would have cost, and what allows it.

    Args:
        choice: What the provider sells.

    Returns:
        A line; empty if there is nothing of the kind.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.plan.offers.choice import Candidate, Unasked
    >>> large = Candidate(offer=Offer(provider="x", instance_type="large"), spot=False, price=0.6)
    >>> unasked(Choice(unasked=(Unasked(large, "costs more than twice $0.1/h"),)))
    'Not tried: large, on demand at $0.6/h, costs more than twice $0.1/h. max_hourly_cost=0.6 would allow it.'
    """
    if not choice.unasked:
        return ""
    first, more = choice.unasked[0], len(choice.unasked) - 1
    rest = "1 more expensive offer was" if more == 1 else f"{more} more expensive offers were"
    others = f" {rest} not tried either." if more else ""
    # Rounded up, or it would not be enough.
    enough = math.ceil(round(first.candidate.price * 1000, 6)) / 1000
    return f"Not tried: {first.candidate}, {first.why}. max_hourly_cost={enough:.6g} would allow it.{others}"


def _limit(refusal: Refusal) -> str:
    """Return what a limit is of."""
    if refusal.kind != "quota":
        return ""
    offer, words = refusal.candidate.offer, ""
    if "region" in refusal.of and offer.region:
        words += f" in {offer.region}"
    if "kind" in refusal.of:
        words += f" for {offer.accelerator_name}" if offer.accelerator_count else " for machines without accelerators"
    if "market" in refusal.of:
        words += " on the spot market" if refusal.candidate.spot else " on demand"
    return f" It is a limit of the account{words}."
