"""What many calls use crosses the line to another machine once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyward as sky
from tests.ssh.conftest import Site

VALUES: dict[str, Any] = {
    "records": [{"id": number, "name": f"name {number}", "tags": ["a", "b"]} for number in range(40_000)],
    "text": "x" * (2 << 20),
    "bytes": bytes(range(256)) * (8 << 10),
    "array": np.arange(1 << 20),
    "dict of bytes": {"data": b"y" * (2 << 20)},
}


@sky.function
def length(number: int, value: Any) -> int:
    """Use an argument, and change it if that can be done."""
    if isinstance(value, np.ndarray):
        value[:] = 0
    return number + len(value)


def sent(pool: sky.Compute) -> int:
    """Count the bytes that were ever sent to the node."""
    [shell] = pool._running._nodes.values()
    return int(shell.link._channel.queued)


def test_a_large_argument_is_sent_once(site: Site) -> None:
    """Whatever it is; what changed in between is sent again, and what was put even less often."""
    with sky.Compute(provider=site.provider(), nodes=1, console="silent", logging=False, ttl=60) as pool:
        assert length(0, "") >> pool == 0
        for name, value in VALUES.items():
            before = sent(pool)
            assert length(0, value) >> pool == len(value)
            first = sent(pool) - before
            for number in range(5):
                assert length(number, value=value) >> pool == number + len(value)
            again = sent(pool) - before - first
            assert first > 1 << 20, name
            assert again < 20_000, name
        VALUES["array"][7] = 5
        before = sent(pool)
        assert length(0, VALUES["array"]) >> pool == 1 << 20
        assert sent(pool) - before > 8 << 20


def test_a_ref_is_sent_once(site: Site) -> None:
    """And taken from the node when it is freed."""
    with sky.Compute(provider=site.provider(), nodes=1, console="silent", logging=False, ttl=60) as pool:
        assert length(0, "") >> pool == 0
        ref = pool.put(VALUES["records"])
        before = sent(pool)
        for number in range(5):
            assert length(number, ref) >> pool == number + 40_000
        assert ref.nbytes < sent(pool) - before < ref.nbytes + 20_000
        [shell] = pool._running._nodes.values()
        assert len(shell.link.buffers._sizes) == 1
        ref.free()
        with pytest.raises(sky.RefError, match="freed"):
            _ = length(0, ref) >> pool
        assert length(1, "") >> pool == 1
        pool._running.engine.run(pool._running.engine.caught_up())
        assert len(shell.link.buffers._sizes) == 0
