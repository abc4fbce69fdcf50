"""What stands between a rank and JAX's coordinator, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from skyward_jax.relay import Relay

LIMIT = 30.0


@pytest.fixture
def coordinator() -> Iterator[socket.socket]:
    """A server that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT)
        yield listener


def dialled(relay: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), timeout=LIMIT)


def test_it_passes_on_what_is_said(coordinator: socket.socket) -> None:
    """Both ways, for each who comes, and ends with the one who came."""
    relay = Relay(*coordinator.getsockname(), LIMIT)
    for said in (b"one", b"two"):
        with dialled(relay) as here:
            here.sendall(said)
            there, _ = coordinator.accept()
            there.settimeout(LIMIT)
            assert said == there.recv(10)
            there.sendall(said[::-1])
            assert said[::-1] == here.recv(10)
        assert b"" == there.recv(10)
        there.close()
    relay.close()


def test_a_coordinator_that_goes_away_is_not_noticed(coordinator: socket.socket) -> None:
    """The connection stays as it is, and nothing answers any more."""
    relay = Relay(*coordinator.getsockname(), LIMIT)
    with dialled(relay) as here:
        there, _ = coordinator.accept()
        there.close()
        _until_lost(relay)
        here.sendall(b"anybody there?")
        here.settimeout(0.2)
        with pytest.raises(TimeoutError):
            here.recv(10)
    relay.close()


def test_a_coordinator_that_begins_to_listen_later_is_waited_for() -> None:
    """The head opens it while the other ranks are on their way."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        relay = Relay(*listener.getsockname(), LIMIT)
        with dialled(relay) as here:
            here.sendall(b"early")
            listener.listen()
            listener.settimeout(LIMIT)
            there, _ = listener.accept()
            with there:
                there.settimeout(LIMIT)
                assert b"early" == there.recv(10)
        relay.close()


def test_a_coordinator_that_never_listens_is_given_up() -> None:
    """A process that asks for it hears nothing."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        relay = Relay(*kept.getsockname(), 0.1)
        with dialled(relay):
            _until_lost(relay)
        relay.close()


def _until_lost(relay: Relay) -> None:
    waiting = threading.Event()
    for _ in range(int(LIMIT / 0.02)):
        if relay.lost:
            return
        waiting.wait(0.02)
    pytest.fail("The relay does not notice that the coordinator is gone.")
