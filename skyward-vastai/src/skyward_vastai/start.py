"""What a container does when it starts: it lets the pool in, and terminates if no client comes."""

from __future__ import annotations

import shlex
from math import ceil

from skyward.provider import END_COMMAND, shell_file

__all__ = ["END_COMMAND", "LONGEST", "onstart"]

LONGEST = 4048
"""Characters of the longest script that Vast.ai takes."""

LEAST_DEADLINE = 300.0
"""Seconds that a container waits at least for a client to make a node of it; `ttl` may be shorter than a boot."""


def onstart(login: str, url: str, ttl: float | None) -> str:
    """
    Write the script that a container runs when it starts.

    Its key is a variable of its first process and of the script, but of no SSH session; what Vast.ai wrote of keys may
    end without a newline. Until a node's own watchdog is there, nothing else would end a container whose client died.

    Args:
        login: The public key that is let in until Vast.ai writes its own list; the account's own keys are not touched.
        url: Where the API is.
        ttl: Seconds without a client that the pool allows; 0 or None never ends it.

    >>> script = onstart("ssh-ed25519 AAAA", "https://console.vast.ai", 600)
    >>> len(script) <= LONGEST, ".no_auto_tmux" in script
    (True, True)
    """
    end = shell_file(__package__, "end.sh", URL=shlex.quote(url))
    text = shell_file(__package__, "start.sh", LOGIN=shlex.quote(login), END=end)
    if ttl:
        seconds = ceil(max(ttl, LEAST_DEADLINE))
        text += "\n" + shell_file(__package__, "deadline.sh", SECONDS=str(seconds), STEP=str(min(5, seconds)))
    assert len(text) < LONGEST
    return f"{text}\n"
