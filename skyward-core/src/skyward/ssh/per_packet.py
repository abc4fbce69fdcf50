"""Connections that do less for each packet than asyncssh does by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from skyward.ssh.known_asyncssh import is_known

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_MSG_IGNORE = 2  # RFC 4253, section 11.2
_MARK = ("gcm", "poly1305")


def leave_out_ignored(connection: SSHClientConnection) -> bool:
    """
    Send no IGNORE packet before every other one.

    They hide the next packet's first block where a cipher chains blocks over packets (RFC 4253, section 9.3.1).
    Ciphers that authenticate take a new nonce for each packet and gain nothing; without, a call takes 10 % less time.

    Args:
        connection: A connection that is logged in.

    Returns:
        Whether there are none from now on; with other ciphers there still are.
    """
    cipher = connection.get_extra_info("send_cipher") or ""
    if not is_known() or not any(mark in cipher for mark in _MARK):
        return False
    send: Any = connection.send_packet

    def send_packet(pkttype: int, *args: bytes, handler: object = None) -> None:
        if pkttype != _MSG_IGNORE:
            send(pkttype, *args, handler=handler)

    connection.send_packet = send_packet  # type: ignore[method-assign]
    return True


def keep_one_timer(connection: SSHClientConnection, interval: float) -> bool:
    """
    Ask for a sign of life after a time of silence with one timer that looks when anything last arrived.

    asyncssh takes its timer back and sets another whenever something arrives, which was a sixth of the time that
    the client's loop spent on a large argument.

    Args:
        connection: A connection that is logged in, and keeps itself alive.
        interval: Seconds of silence after which it asks.

    Returns:
        Whether it does so from now on; if not, asyncssh does it in its own way.
    """
    inside: Any = connection
    if not is_known() or not inside._keepalive_timer:
        return False
    ask = inside._keepalive_timer_callback
    loop = asyncio.get_running_loop()
    clock = loop.time
    heard_at = clock()

    def hear() -> None:
        nonlocal heard_at
        heard_at = clock()

    def look() -> None:
        left = heard_at + interval - clock()
        if left > 0:
            inside._keepalive_timer = loop.call_later(left, look)
        else:
            ask()

    inside._reset_keepalive_timer = hear
    inside._keepalive_timer_callback = look
    inside._cancel_keepalive_timer()
    inside._set_keepalive_timer()
    return True
