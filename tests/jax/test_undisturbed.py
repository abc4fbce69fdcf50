"""What a cancelled call does not leave half done."""

from __future__ import annotations

import signal
import threading

import pytest

from skyward_jax.undisturbed import undisturbed


class Cancelled(BaseException):
    """What reaches a call from outside."""


def test_the_work_is_done_although_the_wait_is_interrupted() -> None:
    """The interruption comes out when it is."""
    done = threading.Event()

    def cancel(*_: object) -> None:
        raise Cancelled

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        threading.Event().wait(0.1)
        done.set()

    before = signal.signal(signal.SIGUSR1, cancel)
    try:
        with pytest.raises(Cancelled):
            undisturbed(work)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done.is_set()


def test_what_the_work_raises_comes_out() -> None:
    """As it is."""

    def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        undisturbed(work)
