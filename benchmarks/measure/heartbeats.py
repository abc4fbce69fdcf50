"""
What the heartbeats of many nodes cost the client: the frames, over Unix sockets, and the looks for silent nodes.

usage: python -m measure.heartbeats [NODES [SECONDS]]

The agents' ends live in a process of their own. Processor time is measured, which other processes leave as it is.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
import time

from skyward.link.channel import Batch, Channel
from skyward.link.frames import Frame
from skyward.node.agent.heartbeat import Heartbeat
from skyward.plan.pool.suspicion import BEATS, Sign, Suspicion

SUSPECT_S, LOST_S = 15.0, 60.0
"""The defaults of a pool."""


def main(nodes: int = 1000, seconds: float = 30.0) -> None:
    """
    Measure, and print the share of a core.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * nodes + 100), most))
    pairs = [socket.socketpair() for _ in range(nodes)]
    if not (agents := os.fork()):
        for ours, _ in pairs:
            ours.close()
        asyncio.run(beat([theirs for _, theirs in pairs], seconds + 10.0))
        os._exit(0)
    for _, theirs in pairs:
        theirs.close()
    share, heard = asyncio.run(listen([ours for ours, _ in pairs], seconds))
    os.waitpid(agents, 0)
    print(f"{nodes} nodes, {heard} heartbeats in {seconds:g} s: {100 * share:.2f} % of a core")


async def beat(sockets: list[socket.socket], seconds: float) -> None:
    """
    Send heartbeats as agents do.
    """
    loop = asyncio.get_running_loop()
    batch = Batch(loop)
    for number, each in enumerate(sockets):
        channel = Channel(loop, batch, each, lambda frame, fds: None, lambda error: None)
        # They begin at different moments, as those of real nodes do.
        loop.call_later(SUSPECT_S / BEATS * number / len(sockets), Heartbeat(loop).start, SUSPECT_S / BEATS, channel)
    await asyncio.sleep(seconds)


async def listen(sockets: list[socket.socket], seconds: float) -> tuple[float, int]:
    """
    Take them as a client does, look for silent nodes, and return the share of a core and the number of heartbeats.
    """
    loop = asyncio.get_running_loop()
    batch, suspicion = Batch(loop), Suspicion[int](SUSPECT_S, LOST_S)

    def take(frame: Frame, fds: tuple[int, ...]) -> None:
        pass

    channels = [Channel(loop, batch, each, take, lambda error: None) for each in sockets]
    await asyncio.sleep(SUSPECT_S / BEATS + 1.0)
    before, cpu, began = sum(channel.heard for channel in channels), time.process_time(), time.monotonic()
    while time.monotonic() < began + seconds:
        verdicts = suspicion.look(
            {number: Sign(channel.heard, 600.0) for number, channel in enumerate(channels)}, loop.time()
        )
        assert not list(verdicts), "a node counts as silent"
        await asyncio.sleep(suspicion.interval)
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    heard = sum(channel.heard for channel in channels) - before
    for channel in channels:
        channel.close()
    return share, heard


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *map(float, sys.argv[2:3]))
