"""Which backend a group has that no one named."""

from __future__ import annotations

import pytest

from skyward import InstanceInfo
from skyward_torch.backends import default_backend

BOTH = "cpu:gloo,cuda:nccl"


@pytest.mark.parametrize(
    ("provider", "nodes", "per_node", "gpus", "expected"),
    [
        ("aws", 2, 1, 0, "gloo"),
        ("aws", 2, 1, 1, BOTH),
        ("aws", 2, 8, 8, BOTH),
        # A rank with its own GPU sees no other.
        ("aws", 1, 8, 1, BOTH),
        ("local", 1, 1, 0, "gloo"),
        ("local", 1, 1, 1, BOTH),
        ("local", 1, 4, 4, BOTH),
        ("local", 1, 4, 2, "gloo"),
        ("local", 2, 1, 1, "gloo"),
        ("local", 2, 1, 8, "gloo"),
    ],
)
def test_ranks_that_share_a_gpu_of_this_machine_use_gloo(
    provider: str, nodes: int, per_node: int, gpus: int, expected: str
) -> None:
    """All others have NCCL where there are GPUs."""
    info = InstanceInfo(provider=provider, total_nodes=nodes, workers_per_node=per_node)
    assert default_backend(info, gpus) == expected
