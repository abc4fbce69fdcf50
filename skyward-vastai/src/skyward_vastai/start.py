"""What a container does when it starts: it lets the pool in, and ends itself if no client comes."""

from __future__ import annotations

import shlex
from math import ceil

from skyward.provider import END_COMMAND, shell_text

__all__ = ["END_COMMAND", "LONGEST", "onstart"]

LONGEST = 4048
"""Characters of the longest script that Vast.ai takes."""

LEAST_DEADLINE = 300.0
"""Seconds that a container waits at least for a client to make a node of it; `ttl` may be shorter than a boot."""


def onstart(login: str, url: str, ttl: float | None) -> str:
    """
    Write the script that a container runs when it starts.

    Args:
        login: The public key that is let in until Vast.ai writes its own list; the account's own keys are not touched.
        url: Where the API is.
        ttl: Seconds without a client that the pool allows; 0 or None never ends it.

    >>> script = onstart("ssh-ed25519 AAAA", "https://console.vast.ai", 600)
    >>> len(script) <= LONGEST, ".no_auto_tmux" in script
    (True, True)
    """
    text = shell_text(
        __package__, "start", LOGIN=shlex.quote(login), END=shell_text(__package__, "end", URL=shlex.quote(url))
    )
    if ttl:
        seconds = ceil(max(ttl, LEAST_DEADLINE))
        text += "\n" + shell_text(__package__, "deadline", SECONDS=str(seconds), STEP=str(min(5, seconds)))
    assert len(text) < LONGEST
    return f"{text}\n"
