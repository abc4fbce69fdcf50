"""
`InstanceInfo` tells a function its place in the pool.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from attrs.exceptions import FrozenInstanceError

from skyward.model.instances.instance import AcceleratorInfo, InstanceInfo, NetworkInfo, PeerInfo


def full() -> InstanceInfo:
    """Return an instance with something in every composite field."""
    return InstanceInfo(
        node=1,
        worker=1,
        total_nodes=3,
        workers_per_node=2,
        peers=[
            PeerInfo(node=0, private_ip="10.0.0.1"),
            PeerInfo(node=1, private_ip="10.0.0.2", public_ip="198.51.100.2"),
        ],
        accelerator=AcceleratorInfo(type="H100", count=8, memory_gb=80.0),
        network=NetworkInfo(interface="eth0", bandwidth_gbps=100.0),
        accelerators=8,
        total_accelerators=24,
    )


def test_without_arguments_it_is_one_node_of_one() -> None:
    """A function that runs locally is the only rank, and the head."""
    alone = InstanceInfo()
    assert (0, 1, 1, 0, True) == (
        alone.node,
        alone.total_nodes,
        alone.total_workers,
        alone.global_worker_index,
        alone.is_head,
    )


@pytest.mark.parametrize(
    ("node", "worker", "index", "head"), [(0, 0, 0, True), (0, 1, 1, False), (1, 0, 2, False), (2, 1, 5, False)]
)
def test_ranks_are_counted_node_by_node(node: int, worker: int, index: int, head: bool) -> None:
    """The global index counts all ranks of a node before those of the next, and only the first is the head."""
    info = InstanceInfo(node=node, worker=worker, total_nodes=3, workers_per_node=2)
    assert (index, head, 6) == (info.global_worker_index, info.is_head, info.total_workers)


def test_it_survives_json() -> None:
    """What `to_dict` gives can be written as JSON, and read back to an equal value."""
    assert full() == InstanceInfo.from_dict(json.loads(json.dumps(full().to_dict())))


def test_it_survives_pickling() -> None:
    """A function may return the value."""
    assert full() == pickle.loads(pickle.dumps(full()))


def test_unknown_keys_are_ignored() -> None:
    """What a newer agent adds does not stop an older worker."""
    data = full().to_dict()
    data["colour"] = "blue"
    data["peers"][0]["colour"] = "blue"
    data["accelerator"]["colour"] = "blue"
    data["network"]["colour"] = "blue"
    assert full() == InstanceInfo.from_dict(data)


def test_missing_keys_take_their_defaults() -> None:
    """A fragment is enough."""
    assert InstanceInfo(node=2) == InstanceInfo.from_dict({"node": 2})


@pytest.mark.parametrize("part", [PeerInfo(node=1, private_ip="10.0.0.2"), AcceleratorInfo(type="T4"), NetworkInfo()])
def test_its_parts_survive_json(part: PeerInfo | AcceleratorInfo | NetworkInfo) -> None:
    """Each part has the same pair of methods."""
    assert part == type(part).from_dict(json.loads(json.dumps(part.to_dict())))


def test_it_can_not_be_changed_and_can_be_a_key() -> None:
    """It is a value: frozen and hashable."""
    with pytest.raises(FrozenInstanceError, match=r"can't set attribute"):
        full().node = 2  # type: ignore[misc]
    assert {full(): 1}[full()] == 1


def test_its_import_is_light() -> None:
    """A worker that asks for it loads attrs, and of ours only what looks peers up."""
    script = "import sys, skyward.model.instances.instance; print(*(n for n in sys.modules if 'skyward.model.' in n))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    folder = "skyward.model.instances"
    assert {folder, f"{folder}.instance", f"{folder}.lazy_peers"} == set(loaded)
