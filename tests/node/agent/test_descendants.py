"""Processes of a node are found by the mark that they inherit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skyward.node.agent.descendants import MARK, end_marked


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is in another process's environment")
def test_processes_of_other_nodes_are_left_alone() -> None:
    """Also of nodes whose marks begin with the same."""
    marks = ("pool-1", "pool-10", "pool-", "other-pool-1")
    processes = [subprocess.Popen(["sleep", "60"], env={MARK: mark, "PATH": "/usr/bin:/bin"}) for mark in marks]
    try:
        end_marked("pool-1")
        assert -9 == processes[0].wait(10)
        assert [None] * 3 == [process.poll() for process in processes[1:]]
    finally:
        for process in processes:
            process.kill()
            process.wait()
