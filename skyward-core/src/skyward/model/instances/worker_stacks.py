"""
Where the code of a pool's workers is: stacks of threads and of asyncio's tasks, as frozen values.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["AsyncTask", "ProcessStacks", "StackFrame", "Stacks", "Thread"]


@frozen
class StackFrame:
    """
    Name a place in code.

    Args:
        file: The file, as the interpreter knows it.
        line: The line; None where it is not known.
        function: The function.

    >>> str(StackFrame("train.py", 7, "step"))
    'train.py, line 7 in step'
    """

    file: str
    line: int | None
    function: str

    def __str__(self) -> str:
        return f"{self.file}, line {'?' if self.line is None else self.line} in {self.function}"


@frozen(kw_only=True)
class AsyncTask:
    """
    Describe where a task of an event loop is.

    Args:
        name: The task's name.
        thread: The thread that its loop runs in.
        frames: Where it is, the innermost place first.
    """

    name: str
    thread: int
    frames: tuple[StackFrame, ...] = ()


@frozen(kw_only=True)
class Thread:
    """
    Describe where a thread of a worker is.

    Args:
        ident: Its number, as `threading.get_ident` gives it.
        frames: Where it is, the innermost place first.
        task_id: The call that it runs, as events name it; None if it runs none.
        function: The function of that call.
        seconds: For how long the call has run.
    """

    ident: int
    frames: tuple[StackFrame, ...] = ()
    task_id: str | None = None
    function: str | None = None
    seconds: float | None = None


@frozen(kw_only=True)
class ProcessStacks:
    """
    Describe where a worker process is.

    Args:
        node: Index of its node.
        rank: Which of the node's ranks it is of.
        pid: Its number on the node.
        threads: Its threads, those with calls first.
        tasks: The tasks of its event loops.
        trouble: Why something is missing; empty if nothing is.
    """

    node: int
    rank: int
    pid: int
    threads: tuple[Thread, ...] = ()
    tasks: tuple[AsyncTask, ...] = ()
    trouble: str = ""


@frozen(kw_only=True)
class Stacks:
    """
    Hold where all workers of a pool are at one moment; as text, it reads like a traceback.

    Args:
        processes: The worker processes, by node and rank.
        unanswered: The nodes that did not answer, and why.

    >>> frame = StackFrame("train.py", 7, "step")
    >>> thread = Thread(ident=1, frames=(frame,), task_id="12", function="train", seconds=3.0)
    >>> stacks = Stacks(processes=(ProcessStacks(node=0, rank=0, pid=99, threads=(thread,)),))
    >>> print(stacks)
    node 0, rank 0, process 99
      train() for 3.0 s, call 12:
        train.py, line 7 in step
    >>> stacks.calls["12"].frames[0].line
    7
    """

    processes: tuple[ProcessStacks, ...] = ()
    unanswered: Mapping[int, str] = field(factory=dict)

    @property
    def calls(self) -> dict[str, Thread]:
        """Return the threads that run calls, by the calls' ids."""
        threads = (thread for process in self.processes for thread in process.threads)
        return {thread.task_id: thread for thread in threads if thread.task_id is not None}

    def node(self, index: int) -> tuple[ProcessStacks, ...]:
        """
        Return the processes of one node.

        Args:
            index: The node's.
        """
        return tuple(process for process in self.processes if process.node == index)

    def __str__(self) -> str:
        lines = [line for process in self.processes for line in _lines(process)]
        lines += [f"node {node} does not answer: {why}" for node, why in sorted(self.unanswered.items())]
        return "\n".join(lines)


def _lines(process: ProcessStacks) -> list[str]:
    """Render one process."""
    lines = [f"node {process.node}, rank {process.rank}, process {process.pid}"]
    if process.trouble:
        lines.append(f"  {process.trouble}")
    for thread in process.threads:
        what = f"thread {thread.ident:#x}"
        if thread.task_id is not None:
            what = f"{thread.function or 'a function'}() for {thread.seconds or 0.0:.1f} s, call {thread.task_id}"
        lines += [f"  {what}:", *(f"    {frame}" for frame in thread.frames)]
    for task in process.tasks:
        lines += [f"  asyncio task {task.name}:", *(f"    {frame}" for frame in task.frames)]
    return lines
