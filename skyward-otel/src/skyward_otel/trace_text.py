"""
The text that a call carries to its node, and the ids of spans that follow from it.

It begins with a `traceparent` as W3C writes it, of the call's own span. Behind it come the span that the call was made
in, or zeros, and the `tracestate`, if there is one. Client and node derive the ids of the other spans from it, so that
neither has to tell the other.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

_PARENT = slice(0, 55)


class CallSpan(NamedTuple):
    """
    Name the span of a call.

    Args:
        trace: Id of its trace.
        span: Its own id.
        flags: The trace's flags; the lowest bit says that it is sampled.
        parent: Id of the span that the call was made in; 0 for none.
        state: The `tracestate`.
    """

    trace: int
    span: int
    flags: int
    parent: int
    state: str

    @property
    def sampled(self) -> bool:
        """Return whether its spans are exported."""
        return bool(self.flags & 1)


def written(call: CallSpan) -> str:
    """
    Return the text that stands for a call's span.

    >>> written(CallSpan(1, 2, 1, 3, ""))
    '00-00000000000000000000000000000001-0000000000000002-01 0000000000000003'
    """
    text = f"00-{call.trace:032x}-{call.span:016x}-{call.flags:02x} {call.parent:016x}"
    return f"{text} {call.state}" if call.state else text


def read(text: str) -> CallSpan | None:
    """
    Read the span that a text stands for; None where it is none.

    >>> read(written(CallSpan(1, 2, 1, 3, "a=b")))
    CallSpan(trace=1, span=2, flags=1, parent=3, state='a=b')
    >>> read("something else") is None
    True
    """
    parts = text[_PARENT].split("-")
    rest = text[_PARENT.stop :].split(maxsplit=1)
    try:
        _, trace, span, flags = parts
        return CallSpan(
            int(trace, 16), int(span, 16), int(flags, 16), int(rest[0], 16), rest[1] if len(rest) > 1 else ""
        )
    except (ValueError, IndexError):
        return None


def span_of_rank(call: CallSpan, task: int, broadcast: int) -> int:
    """
    Return the id of a call's span, which the ranks of a broadcast have each of its own.

    Args:
        call: What the call carries.
        task: The call's number.
        broadcast: The number of its broadcast; 0 for another call.
    """
    return _derived(call.span, task) if broadcast else call.span


def span_of_run(call_span: int, attempt: int) -> int:
    """Return the id of the span in which an attempt of a call runs on its node."""
    return _derived(call_span, attempt)


def _derived(span: int, number: int) -> int:
    data = span.to_bytes(8, "big") + number.to_bytes(8, "big")
    # An id is not 0, which stands for none.
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") or 1
