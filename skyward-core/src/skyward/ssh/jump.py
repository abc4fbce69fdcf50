"""The hosts that a connection goes through on its way."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.model.fields.host_place import HostPlace, places
from skyward.model.instances.machine import SSHAddress

if TYPE_CHECKING:
    from asyncssh import SSHClientConnectionOptions

_USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


def hops(address: SSHAddress) -> tuple[SSHAddress, ...]:
    """
    List the hosts to go through, the first to be entered first.

    They are what `jump` says, else `ProxyJump` in `~/.ssh/config`; before the first come its own.

    Args:
        address: The machine at the end of the way.

    Raises:
        ConfigError: If one of them is no host.
    """
    found = places(address.jump, "jump") if address.jump is not None else ()
    if address.jump is not None and not found:
        return ()
    # A rule for all hosts holds for the jump hosts too, which need none.
    seen = {address.host, *(each.host for each in found)}
    while True:
        before = _configured_jump(SSHAddress(host=found[0].host) if found else address)
        names = {each.host for each in before}
        if not before or seen & names:
            return tuple(_hop(address, each) for each in found)
        seen |= names
        found = (*before, *found)


def _hop(address: SSHAddress, at: HostPlace) -> SSHAddress:
    """Return how a jump host is entered: as its target is trusted, with its keys and those that are for itself."""
    hop = SSHAddress(
        host=at.host, port=at.port, user=at.user, known_hosts=address.known_hosts, trust=address.trust, jump="none"
    )
    return evolve(hop, keys=list(dict.fromkeys((*address.keys, *_own_keys(hop))))) if address.keys else hop


def _own_keys(hop: SSHAddress) -> list[str]:
    """List the keys that would be tried if none were named: those of `~/.ssh/config`, else the usual ones."""
    import asyncssh

    named: Any = _configured(hop).config.get("IdentityFile", ())
    readable = []
    for path in named or _USUAL_KEYS:
        # Without its passphrase a key is the agent's business.
        with contextlib.suppress(OSError, asyncssh.KeyImportError):
            asyncssh.read_private_key(Path(path).expanduser())
            readable.append(str(path))
    return readable


def _configured_jump(address: SSHAddress) -> tuple[HostPlace, ...]:
    """List what `~/.ssh/config` says about the way to a host."""
    if address.private_key is not None:
        # A machine that was made for this pool is in no user's file.
        return ()
    written = _configured(address).tunnel
    return places(written, "ProxyJump in ~/.ssh/config") if isinstance(written, str) else ()


def _configured(address: SSHAddress) -> SSHClientConnectionOptions:
    import asyncssh

    port = () if address.port is None else address.port
    user = () if address.user is None else address.user
    return asyncssh.SSHClientConnectionOptions(
        host=address.host, port=port, username=user, client_keys=None, known_hosts=None, config=()
    )
