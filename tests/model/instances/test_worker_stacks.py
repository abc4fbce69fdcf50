"""Stacks of a pool as values and as text."""

from __future__ import annotations

from skyward.model.instances.worker_stacks import AsyncTask, ProcessStacks, StackFrame, Stacks, Thread


def test_a_call_is_found_by_its_id() -> None:
    """Threads without a call are in no such table."""
    busy = Thread(ident=1, task_id="7", function="train", seconds=2.0, frames=(StackFrame("a.py", 3, "step"),))
    idle = Thread(ident=2)
    stacks = Stacks(processes=(ProcessStacks(node=1, rank=0, pid=9, threads=(busy, idle)),))
    assert {"7": busy} == stacks.calls
    assert () == stacks.node(0)
    assert stacks.processes == stacks.node(1)


def test_text_has_tasks_troubles_and_silent_nodes() -> None:
    """What is missing says why."""
    task = AsyncTask(name="loader", thread=1, frames=(StackFrame("b.py", None, "read"),))
    process = ProcessStacks(node=0, rank=1, pid=9, tasks=(task,), trouble="it does not answer")
    text = str(Stacks(processes=(process,), unanswered={3: "nothing came"}))
    assert text.splitlines() == [
        "node 0, rank 1, process 9",
        "  it does not answer",
        "  asyncio task loader:",
        "    b.py, line ? in read",
        "node 3 does not answer: nothing came",
    ]
