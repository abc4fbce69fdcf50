"""What a machine is told for its first boot: who it is, whom it lets in, and when it ends itself unasked."""

from __future__ import annotations

import base64
import hashlib
import json
from math import ceil
from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    from skyward.model.key_pair import KeyPair

__all__ = ["HostKey", "host_key", "user_data"]

_LARGEST = 16 * 1024
_KIND = b"ssh-ed25519"

# Until a node's own watchdog is there, nobody else would end a machine whose client died.
_BOOT_DEADLINE = """
[ {user} = root ] && home=${{HOME:-/root}} || home=$(eval echo ~{user})
(
  i=0
  while [ "$i" -lt {seconds} ]; do sleep {step}; i=$((i + {step})); done
  for lease in "$home"/.cache/skyward/nodes/*/lease; do [ -e "$lease" ] && exit 0; done
  exec shutdown -h now
) >/dev/null 2>&1 </dev/null &
"""


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
    Return the host key of a machine: always the same for a label, and known to nobody without the pool's key.

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


def user_data(login: str, host: HostKey, user: str, deadline: float) -> str:
    """
    Write what cloud-init does at the first boot.

    Args:
        login: The public key that is let in.
        host: The machine's own key.
        user: Who logs in.
        deadline: Seconds after which it ends itself if no node was made on it; 0 for never.

    >>> text = user_data("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "..."), "ubuntu", 600)
    >>> text.splitlines()[0]
    '#cloud-config'
    """
    config: dict[str, object] = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": f"{host.public}\n"},
        "ssh_authorized_keys": [login],
        "ssh_pwauth": False,
        "disable_root": user != "root",
    }
    if deadline:
        config["runcmd"] = [
            ["sh", "-c", _BOOT_DEADLINE.strip().format(user=user, seconds=ceil(deadline), step=min(5, ceil(deadline)))]
        ]
    # JSON is YAML too, and needs nobody to write it.
    text = f"#cloud-config\n{json.dumps(config, sort_keys=True)}\n"
    assert len(text) <= _LARGEST
    return text


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
