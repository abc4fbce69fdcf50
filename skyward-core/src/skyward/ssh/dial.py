"""Open SSH connections: login, host keys, and how long it is tried."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward.errors import ConfigError, CredentialsError, HostKeyError, TransportError, UnreachableError
from skyward.ssh.boot_wait import Waiting, report as report_wait
from skyward.ssh.host_keys import HostKeys
from skyward.ssh.jump import hops
from skyward.ssh.per_packet import keep_one_timer, leave_out_ignored

if TYPE_CHECKING:
    from asyncssh import ChannelOpenError, SSHClientConnection

    from skyward.model.instances.machine import SSHAddress

LOGIN_TIMEOUT = 20.0
"""Seconds for one attempt: to connect, to agree on keys, and to log in."""

AT_ONCE = 32
"""Attempts under way at the same time, however many machines there are."""

KEEP_ALIVE = 5.0
"""Seconds of silence after which the other end is asked for a heartbeat, three times before it is given up."""

# Hardware makes these three times as fast as asyncssh's first choice (measured: 213-315 MB/s against 123 MB/s).
_CIPHERS = [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes128-ctr",
]

# What to do where a host, or a jump host, refuses the login.
_WAYS_IN = (
    'Name the right key, sky.SSH(hosts, key="~/.ssh/…"), or the right user, user@host.',
    'Name the right user, jump="user@host:port", or its key in ~/.ssh/config.',
)

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 5.0
_WAIT_PART = 0.1

_attempts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


async def dial(
    address: SSHAddress,
    *,
    patience: float,
    missed: Callable[[], None] = lambda: None,
    report: Callable[[str], None] = report_wait,
    interval: float | None = None,
) -> SSHClientConnection:
    """
    Connect to a machine and log in.

    A host that does not answer yet is tried again with growing pauses; a host that refuses us is not, unless it may be
    settling still.
    Of many machines `AT_ONCE` are tried side by side, and the others wait for their turn.

    Args:
        address: The machine.
        patience: Seconds after which a host that does not answer is given up; it is tried once at least.
        missed: Called whenever it did not answer.
        report: Takes a line where it has not answered after a second, once.
        interval: Seconds between two attempts; None waits longer each time.

    Raises:
        UnreachableError: If it did not answer in time.
        TransportError: If there is no machine of that name, or it speaks another SSH.
        CredentialsError: If it refuses the login.
        HostKeyError: If it is not the host that we know, or none that we know.
        ConfigError: If a key or a file of known hosts cannot be read.
    """
    with Waiting(str(address), patience, report) as waiting:
        return await _try(address, patience, missed, interval, waiting)


async def _try(
    address: SSHAddress, patience: float, missed: Callable[[], None], interval: float | None, waiting: Waiting
) -> SSHClientConnection:
    """Try a machine again and again."""
    loop = asyncio.get_running_loop()
    began, settled = loop.time(), math.inf
    while True:
        try:
            # Between two attempts, others have their turn.
            async with _attempts.setdefault(loop, asyncio.Semaphore(AT_ONCE)):
                return await _dial_once(address)
        except (UnreachableError, HostKeyError, CredentialsError) as error:
            tried, waiting.why = loop.time() - began, str(error)
            if isinstance(error, UnreachableError):
                missed()
            else:
                settled = min(settled, tried + address.settling_s)
            if tried >= (patience if isinstance(error, UnreachableError) else min(patience, settled)):
                raise
            # In proportion to the time that it takes, a host that begins to answer is never found late.
            wait = min(_LONGEST_WAIT, max(_FIRST_WAIT, _WAIT_PART * tried)) * random.uniform(0.5, 1.0)
            await asyncio.sleep(min(patience - tried, wait if interval is None else interval))


async def _dial_once(address: SSHAddress) -> SSHClientConnection:
    """Connect through the jump hosts, each inside the connection to the one before it."""
    import asyncssh

    try:
        way = hops(address)
    except (asyncssh.Error, ValueError, OSError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"~/.ssh/config cannot be understood: {error}.") from error
    connection: SSHClientConnection | None = None
    before = ""
    for hop in way:
        connection = await _enter(hop, f"The jump host {hop}", connection, before)
        before = str(hop)
    return await _enter(address, str(address), connection, before)


async def _enter(
    address: SSHAddress, where: str, tunnel: SSHClientConnection | None, before: str
) -> SSHClientConnection:
    """
    Connect to one host, and log in.

    Args:
        address: The host.
        where: What messages call it.
        tunnel: The connection to the jump host before it, which belongs to the new one from then on.
        before: What messages call that jump host.
    """
    try:
        connection = await _log_in(address, where, tunnel, before)
    except BaseException:
        if tunnel is not None:
            tunnel.close()
        raise
    if tunnel is not None:
        connection.set_tunnel(tunnel)
    leave_out_ignored(connection)
    keep_one_timer(connection, KEEP_ALIVE)
    return connection


async def _log_in(
    address: SSHAddress, where: str, tunnel: SSHClientConnection | None, before: str
) -> SSHClientConnection:
    import socket

    import asyncssh

    keys, options = HostKeys(address), _options(address)
    try:
        async with asyncio.timeout(LOGIN_TIMEOUT):
            return await asyncssh.connect(
                address.host,
                client_factory=keys.client,
                known_hosts=keys.known,
                encryption_algs=_CIPHERS,
                compression_algs=None,
                keepalive_interval=KEEP_ALIVE,
                keepalive_count_max=3,
                tunnel=tunnel,
                **options,
            )
    except TimeoutError:
        raise UnreachableError(f"{where} did not answer within {LOGIN_TIMEOUT:g} s.") from None
    except socket.gaierror as error:
        raise TransportError(
            f"There is no host {address.host!r}: {error.strerror or error}.",
            hint="Check its spelling, or name it in ~/.ssh/config.",
        ) from error
    except asyncssh.HostKeyNotVerifiable as error:
        raise keys.refusal() or HostKeyError(f"The host key of {address} cannot be verified: {error}.") from error
    except asyncssh.PermissionDenied as error:
        raise CredentialsError(
            f"{where} refuses the login: {error.reason or error}. Tried: {_tried(address)}.",
            hint=_WAYS_IN[where != str(address)],
        ) from error
    except asyncssh.KeyImportError as error:
        raise ConfigError(f"A private key for {address} cannot be read: {error}.") from error
    except asyncssh.ConnectionLost as error:
        raise UnreachableError(f"{where} closed the connection: {error}.") from error
    except asyncssh.ChannelOpenError as error:
        raise _not_let_through(where, before, error) from error
    except (asyncssh.Error, ValueError) as error:
        raise TransportError(f"No SSH connection to {address}: {type(error).__name__}: {error}.") from error
    except OSError as error:
        raise UnreachableError(f"{where} cannot be reached: {error.strerror or error}.") from error


def _not_let_through(where: str, before: str, error: ChannelOpenError) -> TransportError:
    """Return why a jump host did not connect us with the next one."""
    import asyncssh

    if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        return TransportError(
            f"The jump host {before} refuses to forward: {error.reason}.",
            hint="Set AllowTcpForwarding there, and look for permitopen in its authorized_keys.",
        )
    return UnreachableError(f"{where} cannot be reached from the jump host {before}: {error.reason}.")


def _options(address: SSHAddress) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if address.port is not None:
        options["port"] = address.port
    if address.user is not None:
        options["username"] = address.user
    if address.proxy_command:
        options["proxy_command"] = list(address.proxy_command)
    if address.private_key is not None:
        import asyncssh

        options |= {
            "client_keys": [asyncssh.import_private_key(address.private_key)],
            "agent_path": None,
            "config": None,
        }
    elif address.keys:
        options["client_keys"] = [str(_existing(path)) for path in address.keys]
    return options


def _existing(path: str) -> Path:
    found = Path(path).expanduser()
    with contextlib.suppress(OSError):
        if found.is_file():
            return found
    raise ConfigError(
        f"There is no private key at {path!r}.", hint="Give the path of a private key, such as ~/.ssh/id_ed25519."
    )


def _tried(address: SSHAddress) -> str:
    if address.private_key is not None:
        return "the pool's own key"
    return ", ".join(address.keys) or "the keys of your agent, of ~/.ssh, and what ~/.ssh/config names"
