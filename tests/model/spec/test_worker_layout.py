import pickle
from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.worker_layout import Worker


@pytest.mark.parametrize(("executor", "processes", "threads"), [("auto", 1, 4), ("thread", 1, 4), ("process", 4, 1)])
def test_the_executor_decides_what_runs_the_tasks(executor: Any, processes: int, threads: int) -> None:
    """Slots are the threads of one process, or processes of one thread; their number is the same."""
    worker = Worker(concurrency=4, executor=executor)

    assert (processes, threads) == (worker.processes_per_rank, worker.threads_per_process)


def test_a_node_is_one_rank_with_one_slot_unless_more_is_said() -> None:
    """The defaults give a task the whole node."""
    worker = Worker()

    assert (1, 1, 1) == (worker.per_node, worker.processes_per_rank, worker.threads_per_process)
    assert (0, True) == (worker.buffer, worker.reuse_processes)


def test_a_rank_for_each_accelerator() -> None:
    """The word stands for a number that only the offer tells."""
    assert "accelerator" == Worker(per_node="accelerator").per_node


def test_it_is_a_value() -> None:
    """It is hashable and travels."""
    worker = Worker(concurrency=2, per_node=8)

    assert worker == pickle.loads(pickle.dumps(worker))
    assert 1 == len({worker, Worker(concurrency=2, per_node=8)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number of at least 1, not 0"),
        ({"concurrency": 1.5}, "concurrency must be a whole number"),
        ({"concurrency": True}, "concurrency must be a whole number"),
        ({"buffer": -1}, "buffer must be a whole number of at least 0, not -1"),
        ({"executor": "proces"}, 'executor must be "auto", "thread" or "process", not \'proces\'. .*"process"'),
        ({"executor": None}, "executor must be"),
        ({"reuse_processes": 1}, "reuse_processes must be True or False, not 1"),
        ({"per_node": 0}, 'per_node must be a whole number of at least 1, not 0; "accelerator"'),
        ({"per_node": "acelerator"}, 'per_node must be "accelerator" or a whole number .*Did you mean "accelerator"'),
        ({"per_node": None}, "per_node must be"),
    ],
)
def test_what_no_field_takes_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each error names the parameter, the value, and what is accepted."""
    with pytest.raises(ConfigError, match=message):
        Worker(**arguments)
