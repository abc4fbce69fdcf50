"""What a node says of its GPUs, and how a host with one is judged and shared out among ranks."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

import skyward as sky
from skyward.node.health.built_in import GPU_QUERY
from skyward.node.health.findings import gpus_of, lost_gpus
from tests.gpus import gpu_work
from tests.gpus.conftest import asked
from tests.waiting import until

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(180)]


def short_name(model: str) -> str:
    """Return what a user writes for a model, such as `H100`."""
    return next(word for word in model.split() if any(letter.isdigit() for letter in word))


def test_a_busy_gpu_is_measured() -> None:
    """Utilisation, memory and temperature come with the node's snapshots."""
    heard: list[Any] = []
    with sky.Compute(console="silent", logging=False).on(sky.SkywardEvent, heard.append) as pool:
        assert gpu_work.busy(8.0) >> pool > 10
        seen = [one for one in heard if isinstance(one, sky.Metrics) and one.gpu_utilization is not None]
    assert max(one.gpu_utilization for one in seen) > 50
    assert {one.gpu_memory_total_mb for one in seen} == {float(asked("memory.total")[0])}
    assert max(one.gpu_memory_used_mb for one in seen) > 100
    assert all(10 < one.gpu_temperature < 100 for one in seen)


def test_a_healthy_gpu_is_seen_and_not_reported() -> None:
    """The health check reads its name and its memory errors."""
    said = subprocess.run(["sh", "-c", GPU_QUERY], capture_output=True, text=True, check=True, timeout=60).stdout
    seen = gpus_of(said)
    assert asked("uuid")[0] in str(seen)
    assert lost_gpus(seen, seen) == []


def test_a_gpu_that_is_gone_is_lost() -> None:
    """Where the program answers and lists others, or names the lost one."""
    said = subprocess.run(["sh", "-c", GPU_QUERY], capture_output=True, text=True, check=True, timeout=60).stdout
    seen, other = gpus_of(said), gpus_of(said.replace("GPU-", "GPU-0"))
    assert [one.certain for one in lost_gpus(seen, other)] == [True]


def test_a_host_with_the_gpu_is_taken_and_gives_it_to_a_rank(host: sky.SSH, model: str) -> None:
    """A rank is shown one GPU, and knows its type."""
    name = short_name(model)
    pool = sky.Compute(provider=host, accelerator=name, per_node="accelerator", console="silent", logging=False)
    with pool:
        assert [("0", 1, model)] == gpu_work.visible() @ pool
        assert sky.function(sky.current_accelerator)() >> pool == name
        grouped = sky.integrations.torch()(gpu_work.group)
        assert [(0, 1, "cpu:gloo,cuda:nccl", 1.0, 1.0)] == grouped() @ pool


def test_a_host_with_another_gpu_is_refused(host: sky.SSH, model: str) -> None:
    """Before anything is sent to it, with what it has."""
    pool = sky.Compute(provider=host, accelerator="T4", console="silent", logging=False)
    with pytest.raises(sky.SkywardError, match=short_name(model)), pool:
        pass


def test_a_hang_on_the_gpu_is_shown_by_its_stacks() -> None:
    """A call in a kernel is interrupted by its time limit, and says where it was."""
    with sky.Compute(console="silent", logging=False) as pool:
        with pytest.raises(sky.TaskTimeoutError) as caught:
            gpu_work.busy(120.0).with_timeout(6.0) >> pool
        assert "busy" in str(caught.value)
        assert gpu_work.busy(0.5) >> pool > 0
    until(lambda: int(asked("utilization.gpu")[0]) < 20)
