"""What a machine is given for its first boot, in the little room that EC2 has for it."""

from __future__ import annotations

from collections.abc import Sequence

from skyward.provider import HostKey, boot_deadline, cloud_config

__all__ = ["user_data"]

_LARGEST = 16 * 1024


def user_data(login: str, host: HostKey, user: str, deadline: float, first: Sequence[str] = ()) -> str:
    """
    Write what cloud-init does at the first boot.

    Args:
        login: The public key that is let in.
        host: The machine's own key.
        user: Who logs in.
        deadline: Seconds after which it terminates if no node was made on it; 0 for never.
        first: Shell commands to run at every boot before SSH accepts logins.

    >>> text = user_data("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "..."), "ubuntu", 600)
    >>> text.splitlines()[0]
    '#cloud-config'
    """
    scripts = [boot_deadline(user, deadline, "shutdown -h now")] if deadline else ()
    text = cloud_config(login, host, user, scripts, first=first)
    assert len(text) <= _LARGEST
    return text
