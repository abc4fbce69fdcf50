"""SIGTERM unwinds while something is to be given back, and does what it did before otherwise."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from skyward.engine.pool.sigterm import terminated_as_exit


def test_the_last_to_leave_puts_the_default_back() -> None:
    """In whichever order they leave."""
    first, second = ExitStack(), ExitStack()
    first.enter_context(terminated_as_exit())
    second.enter_context(terminated_as_exit())
    first.close()
    with pytest.raises(SystemExit, match="143"):
        signal.raise_signal(signal.SIGTERM)
    second.close()
    assert signal.SIG_DFL == signal.getsignal(signal.SIGTERM)


def test_a_handler_of_the_user_stays() -> None:
    """Where the user's program handles the signal, nothing is changed."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with terminated_as_exit():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [signal.SIGTERM] == heard


def test_other_threads_change_no_handler() -> None:
    """Only the main thread may, so a pool of another thread does without."""
    seen: list[object] = []

    def enter() -> None:
        with terminated_as_exit():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert [signal.SIG_DFL] == seen


def test_left_in_another_thread() -> None:
    """The handler that could not be taken out lets the signal do what it does by default."""
    script = """
import os, signal, threading
from contextlib import ExitStack
from skyward.engine.pool.sigterm import terminated_as_exit
stack = ExitStack()
stack.enter_context(terminated_as_exit())
thread = threading.Thread(target=stack.close)
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGTERM)
signal.pause()
"""
    run = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=30)
    assert (-signal.SIGTERM, b"") == (run.returncode, run.stderr)


def stubborn() -> None:
    """Go on whatever is raised, as Python itself does in callbacks."""
    while True:
        try:
            time.sleep(60)
        except SystemExit:
            continue


def test_a_forked_child_is_ended_by_the_signal() -> None:
    """What an exception does there depends on where it comes: `Pool.terminate` waited for ever for one that went on."""
    with terminated_as_exit():
        child = multiprocessing.get_context("fork").Process(target=stubborn)
        child.start()
        child.terminate()
        child.join(10)
        code = child.exitcode
        child.kill()
        assert -signal.SIGTERM == code


def test_a_forked_child_that_leaves_the_block_changes_nothing() -> None:
    """Neither for its parent nor for what it opens itself."""
    stack = ExitStack()
    stack.enter_context(terminated_as_exit())
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            stack.close()
            with terminated_as_exit():
                signal.raise_signal(signal.SIGTERM)
        except SystemExit as left:
            code = 0 if left.code == 143 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL else 2
        finally:
            os._exit(code)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with pytest.raises(SystemExit, match="143"):
        signal.raise_signal(signal.SIGTERM)
    stack.close()
    assert signal.SIG_DFL == signal.getsignal(signal.SIGTERM)
