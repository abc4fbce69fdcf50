"""What is kept is a share of the memory that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.node.data.memory_share import LEAST, share_of_memory


def machine(root: Path, total_mib: int, limit: str = "max") -> Path:
    """Make a machine's files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "sys/fs/cgroup/pod").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: {total_mib * 1024} kB\nMemAvailable: 1024 kB\n")
    (root / "proc/self/cgroup").write_text("0::/pod\n")
    (root / "sys/fs/cgroup/pod/memory.max").write_text(limit + "\n")
    return root


@pytest.mark.parametrize(
    ("total_mib", "limit", "expected"),
    [
        (10_000, "max", 1000 << 20),
        (10_000, str(4000 << 20), 400 << 20),
        (1000, str(4000 << 20), 100 << 20),
        (100, "max", LEAST),
    ],
)
def test_a_tenth_of_the_memory(tmp_path: Path, total_mib: int, limit: str, expected: int) -> None:
    """Of the control group's, where that is less."""
    assert share_of_memory(machine(tmp_path, total_mib, limit)) == pytest.approx(expected)


def test_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    """Keeps something still."""
    assert share_of_memory(tmp_path) == LEAST
