"""The interface that other nodes are reached through is found by its address, else by the way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from skyward.node.metrics.interfaces import chosen, default_interface, network

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
ens5\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
vpn\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
"""
INTERFACES = {"lo": "127.0.0.1", "ens5": "10.0.0.5", "ib0": "10.9.0.5"}


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        (["10.9.0.5", "10.0.0.5"], "ib0"),
        (["gpu-1.lab", "10.0.0.5"], "ens5"),
        ([None, "203.0.113.7"], "way out"),
        ([], "way out"),
        (["127.0.0.1"], "lo"),
    ],
    ids=["the first counts", "a name is no address", "behind a router", "nothing said", "this machine"],
)
def test_an_interface_is_chosen(addresses: list[str | None], found: str) -> None:
    """By the address that the other nodes know, by the client's, and where neither is the machine's by its way out."""
    assert found == chosen(INTERFACES, addresses, "way out")


def test_the_default_route_that_is_preferred_counts() -> None:
    """The one with the lowest metric; half of the addresses are no default."""
    assert "ens5" == default_interface(ROUTES)


@pytest.mark.parametrize("text", ["", "Iface\n", "no table", "a\nx 00000000 0 0 0 0 high 0\n"])
def test_no_default_route(text: str) -> None:
    """Nothing is made up where there is none."""
    assert default_interface(text) is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell nothing")
@pytest.mark.parametrize(("speed", "gbps"), [("25000\n", 25.0), ("-1\n", None), ("", None)])
def test_the_bandwidth_is_what_the_kernel_says(tmp_path: Path, speed: str, gbps: float | None) -> None:
    """Virtual interfaces do not say it."""
    (tmp_path / "sys/class/net/lo").mkdir(parents=True)
    (tmp_path / "sys/class/net/lo/speed").write_text(speed)
    assert {"interface": "lo", "bandwidth_gbps": gbps} == network(["127.0.0.1"], root=str(tmp_path))
