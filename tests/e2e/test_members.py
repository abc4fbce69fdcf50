"""What a function sees of the pool's other nodes, which a large pool tells only when asked."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.engine.nodes import membership


@sky.function
def seen() -> tuple[sky.InstanceInfo, int]:
    """Tell where this runs, and among how many."""
    info = sky.instance_info()
    return info, len(info.peers)


@pytest.mark.parametrize("at_once", [0, 32])
def test_peers_are_seen_in_any_call(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for or told with the version, in single calls and broadcasts, and again by workers that begin anew."""
    monkeypatch.setattr(membership, "TOLD_AT_ONCE", at_once)
    with sky.Compute(nodes=2, console="silent", logging=False) as pool:
        for info, count in (seen() >> pool, *(seen() @ pool), seen() >> pool):
            assert (2, 2, [0, 1]) == (count, info.total_nodes, [peer.node for peer in info.peers])
            assert ["127.0.0.1"] * 2 == [peer.private_ip for peer in info.peers]
        pool.refresh()
        assert {(0, 2), (1, 2)} == {(info.node, len(info.peers)) for info, _ in seen() @ pool}


def test_peers_are_seen_where_results_are_opened_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come as the tuple that they are."""
    monkeypatch.setattr(membership, "TOLD_AT_ONCE", 0)
    with sky.Compute(nodes=2, console="silent", logging=False, trust="data") as pool:
        for info in sky.function(sky.instance_info)() @ pool:
            assert ["127.0.0.1"] * 2 == [peer.private_ip for peer in info.peers]
