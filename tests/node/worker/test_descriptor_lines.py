"""Lines from the descriptors of a redirection."""

from __future__ import annotations

import os
import subprocess
import threading
from types import SimpleNamespace

import pytest

from skyward.node.worker import descriptor_lines
from skyward.node.worker.descriptor_lines import DescriptorLines
from skyward.node.worker.routes import READER


def _captured() -> tuple[DescriptorLines, list[str]]:
    lines: list[str] = []
    return DescriptorLines((lines.extend, lines.extend)), lines


def test_nothing_is_opened_that_is_not_asked_for() -> None:
    """A redirection in which only Python prints has no pipes and no thread."""
    before = os.listdir("/dev/fd"), threading.active_count()
    captured, lines = _captured()
    captured.catch_up()
    captured.end()
    assert (before, []) == ((os.listdir("/dev/fd"), threading.active_count()), lines)


def test_lines_come_while_the_redirection_lasts() -> None:
    """A thread hands them on, without a print that would ask for them."""
    arrived = threading.Event()
    captured = DescriptorLines((lambda lines: arrived.set(), lambda lines: None))
    fd = captured.descriptor(1)
    assert fd is not None
    os.write(fd, b"line\n")
    assert arrived.wait(10)
    captured.end()


def test_what_was_written_before_comes_before() -> None:
    """Catching up hands on what is in the pipes, in the calling thread."""
    captured, lines = _captured()
    out, err = captured.descriptor(1), captured.descriptor(2)
    assert out is not None
    assert err is not None
    for number in range(200):
        os.write(out if number % 2 else err, f"{number}\n".encode())
        captured.catch_up()
        assert str(number) == lines[-1]
    captured.end()
    assert [str(number) for number in range(200)] == lines


def test_the_end_hands_on_what_there_is_of_a_line() -> None:
    """And there is nowhere to write any more."""
    captured, lines = _captured()
    fd = captured.descriptor(2)
    assert fd is not None
    os.write(fd, b"half")
    captured.end()
    assert (["half"], None) == (lines, captured.descriptor(2))


def test_a_process_that_goes_on_is_read_and_its_lines_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """They go to the descriptor that the process would have had."""
    arrived, lines = threading.Event(), list[str]()
    captured = DescriptorLines((lambda got: (lines.extend(got), arrived.set()), lines.extend))
    process = subprocess.Popen(
        ["sh", "-c", "echo early; read x; echo late"], stdin=subprocess.PIPE, stdout=captured.descriptor(1)
    )
    assert arrived.wait(10)
    captured.end()
    process.communicate(b"\n")
    reader = captured._thread
    assert reader is not None
    reader.join(10)
    assert (["early"], "late\n") == (lines, capfd.readouterr().out)


def test_what_a_process_has_printed_is_shown_when_its_call_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """However late the thread that reads would come to it."""
    call = SimpleNamespace(at_end=set())
    monkeypatch.setattr(descriptor_lines.task_context, "owner", lambda: call)
    monkeypatch.setattr(DescriptorLines, "_follow", lambda self: None)
    captured, lines = _captured()
    process = subprocess.Popen(["sh", "-c", "read x; echo late"], stdin=subprocess.PIPE, stdout=captured.descriptor(1))
    captured.end()
    process.communicate(b"\n")
    for end in call.at_end:
        end(1)
    assert ([], "late\n") == (lines, capfd.readouterr().out)
    for pipe in captured._pipes:
        os.close(pipe.reading)


def test_a_print_does_not_wait_for_ever_for_lines_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that waits for another thread's print is slow, and no deadlock."""
    monkeypatch.setattr(descriptor_lines, "ORDER_PATIENCE", 0.01)
    called, printed = threading.Event(), threading.Event()
    captured = DescriptorLines((lambda lines: (called.set(), printed.wait(10)), lambda lines: None))
    fd = captured.descriptor(1)
    assert fd is not None
    os.write(fd, b"line\n")
    assert called.wait(10)
    captured.catch_up()
    printed.set()
    captured.end()


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupt_while_the_thread_starts_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    """Whether there is a thread then or not."""
    before, start = len(os.listdir("/dev/fd")), threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if begun:
            start(thread)
        raise KeyboardInterrupt

    captured, _ = _captured()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            captured.descriptor(1)
    captured.end()
    for thread in threading.enumerate():
        if thread.name == READER:
            thread.join(10)
    assert before == len(os.listdir("/dev/fd"))
