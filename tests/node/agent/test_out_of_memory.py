"""What the kernel tells about memory that ran out: control groups of both versions, and none."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.node.agent.out_of_memory import kills, limit_mb

GB = 1000**3
MEMINFO = {"proc/meminfo": f"MemTotal: {16 * GB // 1024} kB\nMemAvailable: {8 * GB // 1024} kB\n"}
VMSTAT = {"proc/vmstat": "pgfault 12\noom_kill 7\n"}
SECOND = {
    "proc/self/cgroup": "0::/user.slice/session-1.scope\n",
    "sys/fs/cgroup/user.slice/memory.events": "low 0\noom 9\noom_kill 3\noom_group_kill 0\n",
    "sys/fs/cgroup/user.slice/memory.max": f"{4 * GB}\n",
}
SCOPE = {
    "sys/fs/cgroup/user.slice/session-1.scope/memory.events": "oom 2\noom_kill 2\n",
    "sys/fs/cgroup/user.slice/session-1.scope/memory.max": "max\n",
}
FIRST = {
    "proc/self/cgroup": "5:cpu:/\n4:memory:/pods/one\n0::/pods/one\n",
    "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GB}\n",
}
PODS = {
    "sys/fs/cgroup/memory/pods/one/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "sys/fs/cgroup/memory/pods/one/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/pods/memory.limit_in_bytes": f"{3 * GB}\n",
}


@pytest.mark.parametrize(
    ("files", "killed", "limit"),
    [
        pytest.param(SECOND | SCOPE, 2, 4000.0, id="version 2: its own count, and its parents' limit"),
        pytest.param(SECOND, 3, 4000.0, id="version 2: a scope that memory is not accounted for"),
        pytest.param(FIRST | PODS, 1, 2000.0, id="version 1: the least of all limits"),
        pytest.param(FIRST, 5, 2000.0, id="version 1, in a container: the path is that of the machine"),
        pytest.param({"proc/self/cgroup": "0::/\n"}, 7, None, id="no group that tells: the machine's count"),
        pytest.param({}, 7, None, id="no groups"),
        pytest.param(
            SECOND | {"sys/fs/cgroup/user.slice/memory.max": f"{64 * GB}\n"}, 3, None, id="more than there is"
        ),
    ],
)
def test_kernel_tells_of_memory_that_ran_out(
    tmp_path: Path, files: dict[str, str], killed: int, limit: float | None
) -> None:
    """How many processes it has killed, and how much memory there is for all of ours, where that is less than all."""
    _write(tmp_path, MEMINFO | VMSTAT | files)
    assert killed == kills(tmp_path)
    assert limit == limit_mb(tmp_path)


def test_kernel_that_tells_nothing_is_no_trouble(tmp_path: Path) -> None:
    """As where there is no /proc, or nonsense in it."""
    assert kills(tmp_path) == 0
    assert limit_mb(tmp_path) is None
    _write(tmp_path, {"proc/self/cgroup": "nonsense\n", "proc/vmstat": "oom_kill many\n", "proc/meminfo": "\n"})
    assert kills(tmp_path) == 0
    assert limit_mb(tmp_path) is None


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
