"""
Times what programs send over a slow line, there and back, beside what the line takes for the bytes as they are.

usage: python benchmarks/slow_line.py [--mbit 20] [--mb 50] [--milliseconds 20] [CONTENT...]

The line is a proxy of its own before an OpenSSH server on this machine; needs openssh-server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compression
from measure.ssh import pool_of, provider, site

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

READ = 16 << 10
LATE = 0.02


class Line:
    """
    Pass a server's bytes on at a rate and with a delay, each way by itself, and count them.

    Args:
        target: The server's address and port.
        mbit: Mbit/s, each way.
        delay: Seconds from one end to the other.
    """

    def __init__(self, target: tuple[str, int], mbit: float, delay: float) -> None:
        self.rate = mbit * 125_000
        self.passed = 0
        self._target = target
        self._delay = delay
        self._ready = threading.Event()
        self.port = 0
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._meet, self._target[0], 0, limit=READ)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, to = await asyncio.open_connection(*self._target, limit=READ)
        await asyncio.gather(self._pass(reader, to), self._pass(far, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        free = loop.time()
        # A router's buffer: what is on the way is bounded by bytes, so that the sender is held up.
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=max(4, int(self.rate * self._delay / READ) + 4))

        async def arrive() -> None:
            with contextlib.suppress(OSError):
                while True:
                    at, data = await way.get()
                    await asyncio.sleep(at - loop.time())
                    if not data:
                        break
                    writer.write(data)
                    await writer.drain()
            writer.close()

        arriving = asyncio.create_task(arrive())
        with contextlib.suppress(OSError):
            while (data := await reader.read(READ)) and not arriving.done():
                self.passed += len(data)
                # What a late wake-up lost is made up for.
                free = max(free, loop.time() - LATE) + len(data) / self.rate
                await asyncio.sleep(free - loop.time())
                await way.put((free + self._delay, data))
        await way.put((loop.time(), b""))
        await arriving


def text_of(content: bytes) -> Any:
    """
    Make text of bytes that are.
    """
    return content.decode("latin-1")


def contents() -> dict[str, Callable[[int], Any]]:
    """
    Name what can be sent, each made for a size.
    """

    def array(name: str, kind: str) -> Callable[[int], Any]:
        import numpy as np

        return lambda size: np.frombuffer(
            next(data for found, _, data in compression.contents(size) if found == name), kind
        )

    return {
        "JSON": lambda size: text_of(compression.records(size)),
        "CSV": lambda size: text_of(compression.table(size)),
        "frame": compression.columns,
        "ids": array("ids, sorted", "i8"),
        "weights": array("weights, float32", "f4"),
        "pictures": compression.picture,
    }


def keep(content: Any) -> int:
    """
    Hold on the node what is asked for next.
    """
    sys.skyward_benchmark = content  # type: ignore[attr-defined]
    return len(content)


def kept() -> Any:
    """
    Give it back.
    """
    return sys.skyward_benchmark  # type: ignore[attr-defined]


def main() -> None:
    """
    Print a table.
    """
    import pickle

    import skyward as sky

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mbit", type=float, default=20, help="Mbit/s of the line, each way")
    parser.add_argument("--mb", type=int, default=50, help="MB of each content")
    parser.add_argument("--milliseconds", type=float, default=20, help="round trip")
    parser.add_argument("content", nargs="*", help="what is sent; all, if left out")
    options = parser.parse_args()
    makers = contents()
    size, put, back = sky.function(len), sky.function(keep), sky.function(kept)
    print(f"{options.mbit:g} Mbit/s each way, {options.milliseconds:g} ms round trip\n")
    print("| content | MB | as it is | there | of it | on the line | back | of it | on the line |\n" + "|---" * 9 + "|")
    with site() as (made, key):
        line = Line((made[0].address, made[0].port), options.mbit, options.milliseconds / 2e3)
        with pool_of(provider(made, key, [line.port])) as pool:
            size(b"") >> pool
            for name in options.content or makers:
                content = makers[name](options.mb * 1_000_000)
                length = len(pickle.dumps(content, 5))
                raw = length / line.rate
                figures = [name, f"{length / 1e6:.1f}", f"{raw:.2f} s"]
                for call in (lambda: put(content) >> pool, lambda: back() >> pool):  # noqa: B023  # called at once
                    before, started = line.passed, time.perf_counter()
                    call()
                    taken = time.perf_counter() - started
                    figures += [f"{taken:.2f} s", f"{taken / raw:.2f}", f"{(line.passed - before) / 1e6:.1f} MB"]
                print("| " + " | ".join(figures) + " |", flush=True)


if __name__ == "__main__":
    main()
