"""
Recognises failures of a rank that only follow from the end of another rank.

The first failure in time is the error of a broadcast.
A plugin whose ranks notice each other's end keeps such a failure back for a while, so that the cause is reported first.
"""

from __future__ import annotations

__all__ = ["AFTERMATH", "is_aftermath"]

AFTERMATH = 3.0
"""Seconds that a rank keeps back what is only the consequence of another one's end."""

_WORDS = ("closed by peer", "reset by peer", "gloo", "nccl", "broken pipe")


def is_aftermath(error: BaseException) -> bool:
    """
    Return whether a failed collective may say only that another rank is gone.

    Args:
        error: What a rank ended with; frameworks raise RuntimeError, or ValueError.

    >>> is_aftermath(RuntimeError("Connection closed by peer [127.0.0.1]:2500")), is_aftermath(RuntimeError("no"))
    (True, False)
    """
    text = str(error).lower()
    return isinstance(error, RuntimeError | ValueError) and any(words in text for words in _WORDS)
