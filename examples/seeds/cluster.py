"""
Ask on a node where it stands in the pool, and what machine it is.
"""

from typing import Any

import skyward as sky


@sky.compute
def worker_role() -> str:
    info: sky.InstanceInfo = sky.instance_info()
    if info.is_head:
        return "the head"
    return f"worker {info.node} of {info.total_nodes}"


@sky.compute
def worker_info() -> dict[str, Any]:
    info = sky.instance_info()
    return {
        "node": info.node,
        "total": info.total_nodes,
        "is_head": info.is_head,
        "accelerators": info.accelerators,
    }


@sky.compute
def meeting_place() -> tuple[str, int, str]:
    info = sky.instance_info()
    return info.head_addr, info.head_port, info.job_id


@sky.function
def step(batch: list[int]) -> int | None:
    info = sky.instance_info()
    return sum(batch) if sky.is_head(info) else None


@sky.function
def everything() -> dict[str, Any]:
    info = sky.instance_info()
    assert info.global_worker_index == info.node * info.workers_per_node + info.worker
    assert info.total_workers == info.total_nodes * info.workers_per_node
    return {
        name: getattr(info, name)
        for name in (
            "id node worker total_nodes workers_per_node provider ip private_ip network_interface spot ssh_port "
            "hourly_rate on_demand_rate instance_type gpu_count gpu_model vcpus memory_gb gpu_vram_gb accelerators "
            "total_accelerators accelerator network peers hostname"
        ).split()
    }


with sky.ComputePool(provider=sky.Local(), nodes=2) as pool:
    roles = worker_role() @ pool
    nodes = [info["node"] for info in worker_info() @ pool]
    places = set(meeting_place() @ pool)
    sums = step([1, 2, 3]) @ pool
    facts = everything() @ pool

for name, value in facts[1].items():
    print(f"{name:18} {value}")
assert [peer.node for peer in facts[0]["peers"]] == [0, 1]
assert all(fact["network"].interface == fact["network_interface"] for fact in facts)
assert facts[0]["network_interface"], "the interface that nodes reach each other through has a name"
print(f"{roles} | nodes {nodes} | one meeting place: {len(places) == 1} | sums {sums}")
