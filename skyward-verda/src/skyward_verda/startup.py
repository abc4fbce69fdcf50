"""The script that a machine runs at its first boot: whom it lets in, who it is, and when it stops unasked."""

from __future__ import annotations

from skyward.provider import HostKey, boot_deadline

__all__ = ["startup_script"]

# What makes a machine's keys at its first boot may come before or after this: it knows nothing of a key of that name.
_SCRIPT = """#!/bin/sh
# Made by Skyward; it is removed with its pool.
umask 077
mkdir -p /root/.ssh
printf '%s\\n' '{login}' >>/root/.ssh/authorized_keys
cat >/etc/ssh/skyward_host_key <<'END'
{private}END
line='HostKey /etc/ssh/skyward_host_key'
if grep -qi '^ *include .*/sshd_config[.]d/' /etc/ssh/sshd_config; then
  mkdir -p /etc/ssh/sshd_config.d
  printf '%s\\n' "$line" >/etc/ssh/sshd_config.d/00-skyward.conf
else
  {{ printf '%s\\n' "$line"; cat /etc/ssh/sshd_config; }} >/etc/ssh/sshd_config.new
  mv /etc/ssh/sshd_config.new /etc/ssh/sshd_config
fi
{mount}systemctl restart ssh || systemctl restart sshd || service ssh restart
"""


def startup_script(login: str, host: HostKey, deadline: float, mount: str = "") -> str:
    """
    Write the script that all machines of a pool run.

    Args:
        login: The public key that is let in.
        host: The machines' own key.
        deadline: Seconds after which a machine stops if no node was made on it; 0 for never.
        mount: Shell commands that mount a volume; no login is possible before.

    >>> text = startup_script("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "..."), 600)
    >>> text.splitlines()[0]
    '#!/bin/sh'
    """
    text = _SCRIPT.format(login=login, private=host.private, mount=f"{mount}\n" if mount else "")
    return f"{text}{boot_deadline('root', deadline, 'shutdown -h now')}\n" if deadline else text
