"""
asyncssh's private methods that are patched are those that the patches were written for.

When one of these tests fails after `make lock`, read what has changed in the methods named here, mend `per_packet` and
`quick_login` if need be, and write down the new digest, and the release in `known_asyncssh`.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

import asyncssh
import pytest
from asyncssh.auth import ClientAuth

from skyward.ssh import per_packet, quick_login
from skyward.ssh.known_asyncssh import NEWEST, OLDEST, is_known

READ = {
    # `leave_out_ignored` takes its place, and drops the packets of the kind IGNORE that it sends itself.
    "SSHClientConnection.send_packet": "fb9da7bec6dd395a",
    # `keep_one_timer` takes the place of the first two.
    "SSHClientConnection._keepalive_timer_callback": "6d8aa6656cfc6003",
    "SSHClientConnection._reset_keepalive_timer": "7a9157707c514524",
    "SSHClientConnection._cancel_keepalive_timer": "d812058ddd18253c",
    "SSHClientConnection._set_keepalive_timer": "23a054202a1cb32b",
    # `sign_at_once` takes the place of the first two, and uses the rest.
    "SSHClientConnection.send_service_request": "9d4dd935b9e7f27e",
    "SSHClientConnection.try_next_auth": "f0135956d276242e",
    "ClientAuth._start": "1bddb5867f09b83b",
    "ClientAuth.send_request": "c40d16fc50093284",
}
"""Beginning of the SHA-256 of each method's source."""

OWNERS = {"SSHClientConnection": asyncssh.SSHClientConnection, "ClientAuth": ClientAuth}


@pytest.mark.parametrize(("name", "digest"), READ.items())
def test_what_is_patched_is_what_was_read(name: str, digest: str) -> None:
    """A method that was rewritten may do something else, or mean something else by its arguments."""
    owner, _, method = name.partition(".")
    source = inspect.getsource(getattr(OWNERS[owner], method))
    assert digest == hashlib.sha256(source.encode()).hexdigest()[:16]


def test_the_release_that_is_locked_is_the_newest_known() -> None:
    """One that is newer is looked at before its private methods are used."""
    assert is_known()
    assert NEWEST == tuple(map(int, asyncssh.__version__.split(".")[:2]))


@pytest.mark.parametrize("release", ["2.17.9", f"{NEWEST[0]}.{NEWEST[1] + 1}.0", "3.0.0", "next"])
def test_other_releases_are_left_alone(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No attribute of a connection is touched."""
    assert not is_known(release)
    assert is_known(".".join(map(str, OLDEST)))
    for module in (per_packet, quick_login):
        monkeypatch.setattr(module, "is_known", lambda: is_known(release))

    class Untouched:
        """A connection without any of them."""

        def get_extra_info(self, name: str) -> str:
            return "aes256-gcm@openssh.com"

    connection: Any = Untouched()
    assert not per_packet.leave_out_ignored(connection)
    assert not per_packet.keep_one_timer(connection, 1.0)
    assert not quick_login.sign_at_once(connection)
    assert {} == vars(connection)
