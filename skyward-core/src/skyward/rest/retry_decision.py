"""What becomes of a call: its answer is accepted, it is sent again later, or it is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from attrs import frozen

from skyward.errors import CredentialsError, ProvisionError
from skyward.rest.reply import Meaning, Reply

__all__ = ["AT_MOST", "LONGEST_PAUSE", "UNANSWERED", "Accept", "Refuse", "RetryLater", "decide", "held", "usual"]

AT_MOST = 6
"""How often one call is sent, whatever happens."""

UNANSWERED = 3
"""How often it is sent to a server that gives no answer."""

LONGEST_PAUSE = 60.0
"""Seconds that a call waits at most before it is sent again; who asks for more is not waited for."""

_LONGEST_BACK_OFF = 20.0
_LATER = "It was tried several times; try again later."
_TOO_MANY, _TIMED_OUT, _BROKEN = 429, 408, 500
# Where less is left of an allowance, calls that are under way could use it up; as many are under way at most.
_LITTLE = 16
_WINDOW = re.compile(r'"[^"]*"\s*;\s*r=(\d{1,9})\s*;\s*t=(\d{1,9})')
_NOT_IMPLEMENTED = frozenset((501, 505, 511))


@frozen
class Accept:
    """Take the answer."""


@frozen
class RetryLater:
    """
    Send the call again.

    Args:
        after: Seconds to wait before.
    """

    after: float


@frozen
class Refuse:
    """
    Give up.

    Args:
        meaning: What it means to the user.
    """

    meaning: Meaning


Decision: TypeAlias = Accept | RetryLater | Refuse
"""What becomes of a call."""


def decide(reply: Reply, attempt: int, meaning: Meaning | None, *, dice: float, now: float) -> Decision:
    """
    Decide on a reply.

    A call that makes something is repeated only where it is known to have made nothing: it was never sent, or the other
    side was too busy to look at it.

    Args:
        reply: What came back.
        attempt: How often the call was sent already.
        meaning: What the provider says that it means; None where it says nothing.
        dice: A random number from 0 to 1.
        now: Seconds since 1970.

    >>> decide(Reply(method="GET", path="/", status=200), 1, None, dice=0.5, now=0.0)
    Accept()
    >>> decide(Reply(method="GET", path="/", status=503), 1, None, dice=1.0, now=0.0)
    RetryLater(after=0.5)
    >>> decide(Reply(method="POST", path="/", status=503, once=True), 1, None, dice=1.0, now=0.0).meaning.kind.__name__
    'ProvisionError'
    """
    if meaning is None and 200 <= reply.status < 300:
        return Accept()
    refusal = Refuse(meaning or usual(reply))
    again = _may_help(reply) if meaning is None or meaning.again is None else meaning.again
    most = AT_MOST if reply.status else UNANSWERED
    if not again or attempt >= most:
        return refusal
    longest = min(_LONGEST_BACK_OFF, (1.0 if reply.status == _TOO_MANY else 0.5) * 2 ** (attempt - 1))
    wait = longest * (0.5 + 0.5 * dice)
    asked = held(reply, now)
    if asked is not None:
        # Clients that got the same moment are spread after it.
        wait = max(wait, asked + dice * min(1.0, 0.1 * asked))
    return refusal if wait > LONGEST_PAUSE + 1.0 else RetryLater(wait)


def held(reply: Reply, now: float) -> float | None:
    """
    Return how long an API asks us to keep away, in seconds; None if it says nothing.

    `Retry-After` counts as seconds or as a date. Where nothing is left of an allowance, `ratelimit-reset` tells when
    there is again: seconds since 1970, or from now if it is a small number. `RateLimit` tells of several windows; calls
    are spread over one of which little is left.

    Args:
        reply: What came back.
        now: Seconds since 1970.

    >>> held(Reply(method="GET", path="/", status=429, headers={"Retry-After": "7"}), 0.0)
    7.0
    >>> little = {"RateLimit": '"minute";r=3;t=12, "hour";r=900;t=9'}
    >>> held(Reply(method="GET", path="/", status=200, headers=little), 0.0)
    3.0
    >>> spent = {"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000009"}
    >>> held(Reply(method="GET", path="/", status=200, headers=spent), 1800000000.0)
    9.0
    """
    asked = _after(reply.headers.get("retry-after", ""), now)
    if asked is not None:
        return asked
    if windows := _WINDOW.findall(reply.headers.get("ratelimit", "")):
        waits = [int(reset) / (int(left) + 1) for left, reset in windows if int(left) < _LITTLE]
        return max(waits, default=None)
    left, reset = _limit(reply.headers, "remaining"), _limit(reply.headers, "reset")
    # Where something is left of this allowance, another one is used up.
    used_up = left == 0 or (left is None and reply.status == _TOO_MANY)
    if reset is None or not used_up:
        return None
    return max(0.0, reset - now if reset > now / 2 else reset)


def usual(reply: Reply) -> Meaning:
    """
    Return what a reply means where the provider says nothing.

    Args:
        reply: What came back.

    >>> usual(Reply(method="GET", path="/", status=401)).kind.__name__
    'CredentialsError'
    """
    if reply.status == 401:
        return Meaning(kind=CredentialsError, hint="Check the key: it is wrong, or was revoked.")
    if reply.status == 403:
        return Meaning(kind=CredentialsError, hint="Give the key the right to do this.")
    late = not reply.status or reply.status >= _BROKEN or reply.status in (_TOO_MANY, _TIMED_OUT)
    return Meaning(kind=ProvisionError, hint=_LATER if late and not reply.once else None)


def _may_help(reply: Reply) -> bool:
    """Return whether sending a call again may help and can do no harm."""
    if reply.status == _TOO_MANY or not reply.sent:
        return True
    broken = reply.status >= _BROKEN and reply.status not in _NOT_IMPLEMENTED
    return not reply.once and (not reply.status or broken or reply.status == _TIMED_OUT)


def _after(text: str, now: float) -> float | None:
    seconds = _number(text)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.fromtimestamp(now, UTC)).total_seconds())


def _limit(headers: Mapping[str, str], name: str) -> float | None:
    return _number(headers.get(f"ratelimit-{name}") or headers.get(f"x-ratelimit-{name}") or "")


def _number(text: str) -> float | None:
    try:
        number = float(text.strip())
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
