"""What ranks find in their environment."""

from __future__ import annotations

import os

import pytest

from skyward import InstanceInfo, NetworkInfo
from skyward_torch.environment import environment
from skyward_torch.network import name_interface


def place(node: int, worker: int, *, broadcast: int = 9) -> InstanceInfo:
    return InstanceInfo(
        node=node,
        worker=worker,
        total_nodes=3,
        workers_per_node=2,
        head_addr="10.0.0.7",
        head_port=2500,
        job_id="a1",
        broadcast=broadcast,
    )


@pytest.mark.parametrize(("node", "worker", "rank"), [(0, 0, "0"), (0, 1, "1"), (2, 0, "4"), (2, 1, "5")])
def test_a_rank_is_told_as_torchrun_does(node: int, worker: int, rank: str) -> None:
    """Every variable that torchrun documents for a script to read."""
    expected = {
        "RANK": rank,
        "WORLD_SIZE": "6",
        "LOCAL_RANK": str(worker),
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": str(node),
        "NODE_RANK": str(node),
        "GROUP_WORLD_SIZE": "3",
        "MASTER_ADDR": "10.0.0.7",
        "MASTER_PORT": "2500",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "a1",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "ROLE_NAME": "default",
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": "6",
    }
    assert expected == environment(place(node, worker), own_device=False)


def test_a_rank_with_a_device_of_its_own_counts_from_that() -> None:
    """`cuda:LOCAL_RANK` has to be there, and the rank sees one device."""
    assert "0" == environment(place(1, 1), own_device=True)["LOCAL_RANK"]
    assert "3" == environment(place(1, 1), own_device=True)["RANK"]


def test_a_call_that_is_no_broadcast_is_a_world_of_one() -> None:
    """Wherever it runs."""
    told = environment(place(2, 1, broadcast=0), own_device=False)
    assert ("0", "1", "0", "1") == tuple(
        told[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    )
    assert "False" == told["TORCHELASTIC_USE_AGENT_STORE"]


def test_the_backends_use_the_interface_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the user named one; where the node knows none, they choose."""
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    name_interface(InstanceInfo())
    assert "GLOO_SOCKET_IFNAME" not in os.environ
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")
    with monkeypatch.context() as patched:
        patched.setattr(os, "environ", dict(os.environ))
        name_interface(InstanceInfo(network=NetworkInfo(interface="ens5")))
        assert ("ens5", "ib0") == (os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"])
