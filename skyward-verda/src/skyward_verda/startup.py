"""The script that a machine runs at its first boot: whom it lets in, who it is, and when it stops unasked."""

from __future__ import annotations

from skyward.provider import HostKey, boot_deadline, shell_file

__all__ = ["startup_script"]


def startup_script(login: str, host: HostKey, deadline: float, mount: str = "") -> str:
    """
    Write the script that all machines of a pool run.

    Args:
        login: The public key that is let in.
        host: The machines' own key.
        deadline: Seconds after which a machine stops if no node was made on it; 0 for never.
        mount: Shell commands that mount disks; no login is possible before.

    >>> text = startup_script("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "..."), 600)
    >>> text.splitlines()[0]
    '#!/bin/sh'
    """
    words = {"LOGIN": login, "PRIVATE": host.private.rstrip("\n"), "MOUNT": mount or ":"}
    text = f"#!/bin/sh\n{shell_file(__package__, 'startup.sh', **words)}\n"
    return f"{text}{boot_deadline('root', deadline, 'shutdown -h now')}\n" if deadline else text
