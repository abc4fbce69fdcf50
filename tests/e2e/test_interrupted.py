"""What a program prints that is interrupted while it waits for a call."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, threading
import skyward as sky

@sky.function
def hang(path):
    import threading
    open(path, "w").close()
    threading.Event().wait(60)

{opening}
path = os.path.join({folder!r}, "begun")

def interrupt():
    while not os.path.exists(path):
        threading.Event().wait(0.01)
    # As long as it takes to begin to wait; nothing shows from outside that it does.
    threading.Event().wait(0.3)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
{calling}
"""
WITH = "pool = sky.Compute(console='silent')"
EXPRESSIONS = {
    "run": "hang(path) >> pool",
    "future": "(hang(path) > pool).result()",
    "map": "pool.map(hang, [path])",
    "streamed map": "next(pool.map(hang, iter([path]), stream=True))",
}


@pytest.mark.slow
@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_interrupt_shows_the_users_line(tmp_path: Path, expression: str) -> None:
    """And none of ours."""
    printed = _printed(tmp_path, WITH, f"with pool:\n    {expression}")
    assert expression in printed
    assert "/skyward/" not in printed
    assert printed.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.slow
def test_outside_a_block_the_operator_is_shown_too(tmp_path: Path) -> None:
    """Nothing of what it did."""
    printed = _printed(tmp_path, f"{WITH}\npool.open()", "hang(path) >> pool")
    assert "hang(path) >> pool" in printed
    assert 1 == printed.count("/skyward/")


WAITING = {
    "queue": "jobs.get()",
    "lock": "lock.acquire(timeout=None)",
    "barrier": "barrier.wait()",
}


@pytest.mark.slow
@pytest.mark.parametrize("expression", WAITING.values(), ids=WAITING)
def test_an_interrupt_of_a_wait_for_others_shows_the_users_line(tmp_path: Path, expression: str) -> None:
    """And no frame of ours, or of the store's client library."""
    calling = f"""
with pool:
    jobs, barrier, lock = pool.queue("q"), pool.barrier("b", 2), pool.lock("l", timeout=None)
    taken = threading.Thread(target=pool.lock("l").acquire)
    taken.start()
    taken.join()
    open(path, "w").close()
    {expression}
"""
    printed = _printed(tmp_path, WITH, calling)
    assert expression in printed
    assert "/skyward/" not in printed
    assert "/valkey/" not in printed
    assert printed.rstrip().endswith("KeyboardInterrupt")


LEAVING = """
import os, signal, threading
import skyward as sky

@sky.function
def talk():
    for number in range(2000):
        print(number)

def handler(log):
    # The machines are given back, so that the handler is what the pool waits for.
    while pool.receipt is None:
        threading.Event().wait(0.01)
    if log.line == "9":
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)

pool = sky.Compute(console="silent", logging=sky.LogConfig(file={log!r})).on(sky.Log, handler)
with pool:
    talk() >> pool
"""


def test_an_interrupt_while_handlers_are_waited_for(tmp_path: Path) -> None:
    """It ends the program, and what the handler has not taken is counted, and kept in the log."""
    log = tmp_path / "sky.log"
    printed = _run(tmp_path, LEAVING.format(log=str(log)))
    assert printed.rstrip().endswith("KeyboardInterrupt")
    assert "handler=handler: 1,991 log lines" in printed
    # Between the last machine and the wait an interrupt is one that leaves the pool.
    reasons = ("the wait was interrupted", "the pool was left by an interrupt")
    assert any(f"because {reason}. They are in {log}." in printed for reason in reasons), printed
    kept = [line.rpartition(" ")[2] for line in log.read_text().splitlines() if " undelivered node=0 stdout " in line]
    assert [str(number) for number in range(9, 2000)] == kept


def _printed(folder: Path, opening: str, calling: str) -> str:
    """Run a program, and give what it prints of its end."""
    return _run(folder, PROGRAM.format(opening=opening, calling=calling, folder=str(folder)))


def _run(folder: Path, program: str) -> str:
    """Run a program that an interrupt ends, and give what it prints to standard error."""
    script = folder / "program.py"
    script.write_text(program)
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # What is started in the background of a shell ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    return run.stderr
