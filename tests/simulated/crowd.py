"""
Many fresh machines behind real SSH servers, all in one process, so that they cost hardly more than their logins.

`python -m tests.simulated.crowd COUNT SECONDS` prints a port and a host key for each, and accepts any login.
A bootstrap takes so many seconds.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from skyward.model.instances.machine import SSHAddress
from tests.simulated.machine import Machine


@contextmanager
def crowd(count: int, prepares: float) -> Iterator[list[SSHAddress]]:
    """
    Run such machines, and give their addresses.

    Args:
        count: How many.
        prepares: Seconds that a bootstrap takes.
    """
    command = [sys.executable, "-m", "tests.simulated.crowd", str(count), str(prepares)]
    root, pipe = Path(__file__).parents[2], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            told = [process.stdout.readline().split(maxsplit=1) for _ in range(count)]
            yield [
                SSHAddress(host="127.0.0.1", port=int(port), user="root", host_key=key.strip()) for port, key in told
            ]
        finally:
            process.stdin.close()
            process.wait(30)


async def main(count: int, prepares: float) -> None:
    """Be such machines until standard input ends."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    times = {"runs": 0.0, "answers": 0.0, "enters": 0.0, "prepares": prepares}
    machines = [Machine(key, guests=lambda change: None, fresh=True, **times) for _ in range(count)]
    await asyncio.sleep(0.1)
    for machine in machines:
        print(machine.address.port, machine.address.host_key, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
