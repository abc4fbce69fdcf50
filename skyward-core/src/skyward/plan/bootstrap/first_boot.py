"""
What a machine is given for its first boot: its identity, who may log in, and when it terminates itself unasked.

For providers of any cloud.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from attrs import field, frozen

from skyward.shell_files import shell_file

if TYPE_CHECKING:
    from skyward.model.instances.key_pair import KeyPair

__all__ = ["HostKey", "boot_deadline", "boot_watchdogs", "cloud_config", "first_contact", "host_key"]

LEAST_DEADLINE = 120.0
"""Seconds that a machine waits at least for a client to make a node of it; `ttl` may be shorter than a boot."""

_KIND = b"ssh-ed25519"

_MARK = "skyward"
"""Ends the line of a key that a pool logs in with."""


@frozen
class HostKey:
    """
    Hold the key by which a machine proves to be itself.

    Args:
        public: Its line in a file of known hosts.
        private: Its text in the format of OpenSSH.
    """

    public: str
    private: str = field(repr=False)


def host_key(pool_key: KeyPair, label: str) -> HostKey:
    """
    Return the host key of a machine: always the same for a label, and unknown to all that lack the pool's key.

    A launch that is sent again has to say the same as before, and a listing has to know it again.

    Args:
        pool_key: The pool's key.
        label: Names the machine within the pool.
    """
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    own = forms.load_ssh_private_key(pool_key.private.encode(), None)
    assert isinstance(own, Ed25519PrivateKey)
    # A signature by ed25519 has no randomness in it.
    seed = hashlib.sha256(own.sign(f"host key of {label}".encode())).digest()
    raw = forms.Encoding.Raw, forms.PublicFormat.Raw
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(*raw)
    blob = base64.b64encode(_string(_KIND) + _string(public)).decode()
    return HostKey(f"{_KIND.decode()} {blob}", _private(seed, public))


def first_contact(ttl: float | None) -> float:
    """
    Return after how many seconds a machine ends that no client made a node of; 0 for never.

    Args:
        ttl: Seconds without a client that the pool allows; 0 or None for any number.

    >>> first_contact(600.0), first_contact(5.0), first_contact(None)
    (600.0, 120.0, 0.0)
    """
    return max(ttl, LEAST_DEADLINE) if ttl else 0.0


def boot_deadline(user: str, seconds: float, end: str) -> str:
    """
    Write the shell commands that end a machine if no node was made on it.

    Args:
        user: The login user.
        seconds: How long it waits.
        end: The command that ends it.

    >>> "exec shutdown -h now" in boot_deadline("root", 600, "shutdown -h now")
    True
    """
    limit = ceil(seconds)
    return shell_file(__package__, "boot_deadline.sh", USER=user, SECONDS=str(limit), STEP=str(min(5, limit)), END=end)


def boot_watchdogs(user: str) -> str:
    """
    Write the shell commands that start the watchdogs of nodes again, at every boot.

    A machine that is rebooted without a client, as one that lingers or whose client is dead, ends in its time.

    Args:
        user: The login user.

    >>> "watchdog.sh" in boot_watchdogs("root")
    True
    """
    return shell_file(__package__, "boot_watchdogs.sh", USER=user)


def cloud_config(
    login: str, host: HostKey, user: str, scripts: Sequence[str] = (), *, first: Sequence[str] = ()
) -> str:
    """
    Write what cloud-init does at the first boot, and at later ones.

    A machine that boots from an image of another one of ours forgets that one first; one that is rebooted has its
    watchdogs back.

    Args:
        login: The public key that may log in.
        host: The machine's own key.
        user: The login user.
        scripts: Shell commands to run.
        first: Shell commands to run at every boot before SSH accepts logins.

    >>> text = cloud_config("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "..."), "ubuntu")
    >>> text.splitlines()[0]
    '#cloud-config'
    """
    forget = shell_file(__package__, "forget.sh", USER=user, MARK=_MARK)
    config: dict[str, object] = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": f"{host.public}\n"},
        "ssh_authorized_keys": [f"{login} {_MARK}"],
        "ssh_pwauth": False,
        "disable_root": user != "root",
        # Before SSH accepts logins; not at a later boot of the same machine, whose results are still to be fetched.
        "bootcmd": [
            ["cloud-init-per", "instance", "skyward", "sh", "-c", forget],
            ["sh", "-c", boot_watchdogs(user)],
            *(["sh", "-c", script] for script in first),
        ],
    }
    if scripts:
        config["runcmd"] = [["sh", "-c", script] for script in scripts]
    # JSON is YAML too, and needs no library to write it.
    return f"#cloud-config\n{json.dumps(config, sort_keys=True)}\n"


def _private(seed: bytes, public: bytes) -> str:
    """Write a private key in the format of OpenSSH, whose random number is none here: the text has to be the same."""
    check = hashlib.sha256(public).digest()[:4]
    inner = check + check + _string(_KIND) + _string(public) + _string(seed + public) + _string(b"")
    inner += bytes(range(1, 1 + -len(inner) % 8))
    outer = b"openssh-key-v1\0" + _string(b"none") + _string(b"none") + _string(b"") + (1).to_bytes(4, "big")
    text = base64.b64encode(outer + _string(_string(_KIND) + _string(public)) + _string(inner)).decode()
    lines = "\n".join(text[start : start + 70] for start in range(0, len(text), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"


def _string(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
