"""How the server of a pool's collections is configured: a pure text."""

from __future__ import annotations

import math

__all__ = ["REFUSED", "server_config"]

REFUSED = "+@all -@admin -migrate -restore"
"""
What a task may have the server do, as its access list says: no writing of files, no loading of code, no connecting.

A node that was taken over cannot reach the machine of the server through it.
"""


def server_config(*, socket: str, directory: str, password: str, memory: int) -> str:
    """
    Render the configuration, in words that Redis 6.2 and all versions of Valkey know.

    Args:
        socket: The Unix socket to listen at; there is no TCP port.
        directory: Where it may write, which it never does: nothing is stored on a disk.
        password: What the one user has to know.
        memory: Bytes of values that it holds; when it is full, it refuses to take more.

    >>> print(server_config(socket="/n/s.sock", directory="/n", password="secret", memory=1 << 30))
    port 0
    unixsocket "/n/s.sock"
    unixsocketperm 600
    dir "/n"
    user default reset on >secret ~* &* +@all -@admin -migrate -restore
    maxmemory 1073741824
    maxmemory-policy noeviction
    save ""
    appendonly no
    daemonize no
    databases 1
    logfile ""
    loglevel warning
    set-proc-title no
    <BLANKLINE>
    """
    lines = (
        "port 0",
        f"unixsocket {_quoted(socket)}",
        "unixsocketperm 600",
        f"dir {_quoted(directory)}",
        f"user default reset on >{password} ~* &* {REFUSED}",
        f"maxmemory {math.floor(memory)}",
        "maxmemory-policy noeviction",
        'save ""',
        "appendonly no",
        "daemonize no",
        "databases 1",
        'logfile ""',
        "loglevel warning",
        # A title would be written over its environment, by which the processes of a node are found.
        "set-proc-title no",
        "",
    )
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """
    Write a text as the server's configuration quotes it.

    >>> _quoted('a "b"')
    '"a \\\\"b\\\\""'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
