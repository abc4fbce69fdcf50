"""Docker's and Podman's command line, which takes the same words."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from skyward.provider import ConfigError, ProvisionError

TIMEOUT = 60.0
"""Seconds for one command that has nothing to download."""

PULL_TIMEOUT = 600.0
"""Seconds for one that may have to download an image."""

BINARIES = ("docker", "podman")

# What watches a container for Podman leaves a file `oom` where it was started, once memory runs out in there.
_NOWHERE = "/proc" if os.path.isdir("/proc") else None


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def find_binary(wanted: str | None) -> str:
    """
    Find the command line to use.

    Args:
        wanted: Its name; None for the first that is there.

    Raises:
        ConfigError: If it is not installed.
    """
    for name in (wanted,) if wanted else BINARIES:
        if shutil.which(name):
            return name
    raise ConfigError(
        f"{wanted or 'Neither docker nor podman'} is {'not ' if wanted else ''}installed on this machine.",
        hint="Install it, or name the other with binary=.",
    )


async def attempt(binary: str, *words: str, timeout: float = TIMEOUT, env: Mapping[str, str] | None = None) -> Done:
    """
    Run a command and wait for its end, whatever that is.

    Args:
        binary: Docker or Podman.
        words: The command, which every user of this machine can read.
        timeout: Seconds it may take.
        env: Variables that it has besides those of this process.

    Raises:
        ProvisionError: If it does not end in time, or cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            binary,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=_NOWHERE,
            env={**os.environ, **env} if env else None,
        )
    except OSError as error:
        raise ProvisionError(f"{binary} could not be started: {error}.", provider="container") from error
    try:
        async with asyncio.timeout(timeout):
            out, err = await process.communicate()
    except BaseException as error:
        process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            message = f"{binary} {words[0]} did not end within {timeout:g} s."
            raise ProvisionError(message, provider="container") from None
        raise
    return Done(process.returncode or 0, out.decode(errors="replace").strip(), err.decode(errors="replace").strip())


async def command(binary: str, *words: str, timeout: float = TIMEOUT) -> str:
    """
    Run a command and give what it prints.

    Raises:
        ProvisionError: If it fails; the message has its last lines.
    """
    done = await attempt(binary, *words, timeout=timeout)
    if done.code:
        raise failed(binary, words[0], done)
    return done.out


def is_gone(done: Done) -> bool:
    """
    Return whether a command failed because what it was about is not there; each of the two has its own words for that.

    Args:
        done: What it left behind.

    >>> is_gone(Done(1, "", "Error: No such network: skyward-a1"))
    True
    """
    return done.code != 0 and any(words in done.err.lower() for words in ("no such ", "not found"))


def failed(binary: str, verb: str, done: Done) -> ProvisionError:
    """Make the error of a command that failed."""
    lines = "".join(f"\n  | {line}" for line in (done.err or done.out).splitlines()[-5:])
    return ProvisionError(f"{binary} {verb} failed with code {done.code}:{lines}", provider="container")
