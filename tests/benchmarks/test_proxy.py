"""The benchmarks' line passes every byte once and in order, whatever it is changed to meanwhile, and counts them."""

from __future__ import annotations

import random
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WAIT = 20.0
BYTES = 3_000_000


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """Run a server that sends back what it gets until that ends."""

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[:2]
        listener.shutdown(socket.SHUT_RDWR)


def test_a_line_that_changes_passes_every_byte_in_order(benchmarks: None, echo: tuple[str, int]) -> None:
    """A shorter delay and another rate let nothing overtake what was sent before; the end comes last."""
    from measure.proxy import Proxy

    sent, got = random.Random(0).randbytes(BYTES), bytearray()
    with Proxy([echo], round_trip_s=0.05) as proxy, socket.create_connection((echo[0], proxy.ports[0]), WAIT) as line:

        def read() -> None:
            while data := line.recv(65536):
                got.extend(data)

        reading = threading.Thread(target=read)
        reading.start()
        for number, settings in enumerate([(0.05, None), (0.002, None), (0.01, 100e6), (0.001, 400e6), (0.0, None)]):
            proxy.change(*settings)
            line.sendall(sent[number * BYTES // 5 : (number + 1) * BYTES // 5])
        line.shutdown(socket.SHUT_WR)
        reading.join(WAIT)
        assert sent == bytes(got)
        assert (BYTES, BYTES) == proxy.passed()


def test_a_server_that_is_gone_ends_the_connection(benchmarks: None) -> None:
    """As a refused connection would, if later."""
    from measure.proxy import Proxy

    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()[:2]
    with Proxy([address]) as proxy, socket.create_connection(("127.0.0.1", proxy.ports[0]), WAIT) as line:
        assert b"" == line.recv(1)
