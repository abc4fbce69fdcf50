"""Logging in with one request, and in asyncssh's own way where that is not taken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from skyward.errors import CredentialsError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh.dial import dial


class Gate(asyncssh.SSHServer):
    """
    Let in the keys that are known, and write down what was asked.

    Args:
        asked: Gets each request for a key.
        known: The keys.
        reluctant: How many requests are refused whatever the key.
    """

    def __init__(self, asked: list[bytes], known: list[bytes], reluctant: int) -> None:
        self._asked = asked
        self._known = known
        self._reluctant = reluctant

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self._asked.append(key.public_data)
        return len(self._asked) > self._reluctant and key.public_data in self._known


def entered(
    tmp_path: Path, key: asyncssh.SSHKey, known: list[asyncssh.SSHKey], *, reluctant: int = 0
) -> tuple[list[bytes], list[int]]:
    """Log in by a key: the keys that were asked for, and the messages of the login that the client sent."""
    asked: list[bytes] = []
    sent: list[int] = []
    path = tmp_path / "key"
    key.write_private_key(path)
    host_key = asyncssh.generate_private_key("ssh-ed25519")

    async def scenario() -> None:
        server = await asyncssh.create_server(
            lambda: Gate(asked, [one.public_data for one in known], reluctant),
            "127.0.0.1", 0, server_host_keys=[host_key],
        )  # fmt: skip
        address = SSHAddress(
            host="127.0.0.1", port=server.get_port(), user="root", keys=(str(path),),
            host_key=host_key.export_public_key().decode(),
        )  # fmt: skip
        send = asyncssh.SSHClientConnection.send_userauth_packet

        def noted(self: Any, pkttype: int, *args: bytes, **options: Any) -> None:
            sent.append(pkttype)
            send(self, pkttype, *args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncssh.SSHClientConnection, "send_userauth_packet", noted)
            async with server, await dial(address, patience=0.0):
                pass

    asyncio.run(scenario())
    return asked, sent


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
def test_a_key_is_shown_and_signed_for_at_once(kind: str, tmp_path: Path) -> None:
    """One request, which is sent before the service is granted."""
    key = asyncssh.generate_private_key(kind)
    asked, sent = entered(tmp_path, key, [key])
    assert ([key.public_data], 1) == (asked, len(sent))


def test_a_key_that_can_sign_in_several_ways_is_asked_for_first(tmp_path: Path) -> None:
    """Which of them the server takes is only known then."""
    key = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
    _, sent = entered(tmp_path, key, [key])
    assert 3 == len(sent)


def test_a_server_that_refuses_at_first_is_asked_in_the_usual_way(tmp_path: Path) -> None:
    """As if nothing had been sent: which ways in there are, whether the key would do, and then the signature."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    _, sent = entered(tmp_path, key, [key], reluctant=1)
    assert 4 == len(sent)


def test_a_wrong_key_is_refused_in_the_end(tmp_path: Path) -> None:
    """With the error that names it."""
    with pytest.raises(CredentialsError, match=r"refuses the login.*Tried: .*key"):
        entered(tmp_path, asyncssh.generate_private_key("ssh-ed25519"), [asyncssh.generate_private_key("ssh-ed25519")])
