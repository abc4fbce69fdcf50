"""Logging in with as few round trips as SSH allows: the one key that is meant is shown at once, and signed for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from skyward.ssh.known_asyncssh import is_known

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

__all__ = ["sign_at_once"]

_log = logging.getLogger(__name__)

_METHOD = b"publickey"


def sign_at_once(connection: SSHClientConnection) -> bool:
    """
    Have a connection send its key and the signature in one breath with the request for the service.

    asyncssh asks for the service, then which methods there are, then whether the key would do, and then signs, each
    after the answer to the one before; RFC 4252, section 7, lets a client sign without asking.
    It is for a connection with one key in memory, whose kind has one way to sign: one of several may be a key that
    has to be touched, and those of an agent may ask their owner.
    A server that does not take it is asked in asyncssh's own way, as if nothing had been sent.

    Args:
        connection: A connection that has exchanged nothing yet.

    Returns:
        Whether it will; with other keys, or another asyncssh, nothing is changed.
    """
    if not is_known():
        return False
    inside: Any = connection
    preferred = inside._preferred_auth
    if not inside._public_key_auth or (preferred and _METHOD not in preferred):
        return False
    key = _only(inside._client_keys)
    if key is None:
        return False
    request_service, try_next = inside.send_service_request, inside.try_next_auth

    def send_service_request(service: bytes) -> None:
        inside.send_service_request = request_service
        request_service(service)
        inside._auth = _signed(inside, key)

    def granted(*, next_method: bool = False) -> None:
        inside.try_next_auth = refused

    def refused(*, next_method: bool = False) -> None:
        _log.debug("ssh.key_not_taken_at_once")
        inside.try_next_auth = try_next
        inside._auth_methods = [b"none"]
        try_next()

    inside.send_service_request = send_service_request
    inside.try_next_auth = granted
    return True


def _signed(connection: Any, key: Any) -> Any:
    """Begin an authentication that does not ask whether the key would do."""
    from asyncssh.auth import ClientAuth
    from asyncssh.packet import Boolean, String

    class Signed(ClientAuth):
        async def _start(self) -> None:
            facts = (Boolean(True), String(key.algorithm), String(key.public_data))
            await self.send_request(*facts, key=key, trivial=False)

    return Signed(connection, _METHOD)


def _only(keys: Any) -> Any:
    """Return the one key of a connection, if it is one that signs at once, and in one way only."""
    from asyncssh.public_key import SSHLocalKeyPair

    if not isinstance(keys, list) or len(keys) != 1:
        return None
    key = keys[0]
    if type(key) is not SSHLocalKeyPair or len(key.sig_algorithms) != 1 or key.algorithm.startswith(b"sk-"):
        return None
    return key
