"""Where descriptors 1 and 2 lead while calls have sections of their own."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from skyward.node.task import task_context
from skyward.node.task.output import redirect_output, silent
from skyward.node.worker.descriptor_routing import descriptor_for_processes, shared_sink
from skyward.node.worker.print_routing import routed
from skyward.node.worker.routes import STDERR, STDOUT, Silence, on_route
from skyward.node.worker.standard_descriptors import DESCRIPTORS, flush_c

if TYPE_CHECKING:
    from skyward.node.worker.routes import Route


class Kept:
    """A sink that has a pipe."""

    def __init__(self) -> None:
        self.end, self.fd = os.pipe()

    def write(self, text: str, /) -> int:
        """Write to the pipe."""
        return os.write(self.fd, text.encode())

    def flush(self) -> None:
        """Do nothing."""

    def descriptor(self) -> int | None:
        """Return its end."""
        return self.fd


QUIET, KEPT = Silence(), Kept()


@pytest.fixture(autouse=True)
def _alone_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count no thread that was there before: tests that open pools leave the engine's, beside which none is alone."""
    others = {thread for thread in threading.enumerate() if thread is not threading.current_thread()}
    every = threading.enumerate
    monkeypatch.setattr(threading, "enumerate", lambda: [thread for thread in every() if thread not in others])


@pytest.mark.parametrize(
    ("calls", "out", "err"),
    [
        ([], None, None),
        ([[]], None, None),
        ([[(QUIET, None)]], QUIET, None),
        ([[(KEPT, QUIET)]], KEPT, QUIET),
        ([[(QUIET, QUIET), (KEPT, QUIET)]], KEPT, QUIET),
        ([[(KEPT, KEPT), (None, None)]], None, None),
        ([[(QUIET, QUIET)], [(QUIET, None)]], QUIET, None),
        ([[(QUIET, QUIET)], []], None, None),
        ([[(KEPT, KEPT)], [(QUIET, QUIET)]], None, None),
        ([[(KEPT, KEPT)], [(KEPT, KEPT)]], None, None),
    ],
)
def test_what_may_be_any_calls_goes_where_all_of_them_agree(
    calls: Sequence[Sequence[Route]], out: object, err: object
) -> None:
    """The only call decides, by the innermost of its routes; several calls agree on silence alone."""
    assert (out, err) == (shared_sink(calls, STDOUT), shared_sink(calls, STDERR))


def test_what_c_code_holds_back_is_written_where_it_was_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Before a section, in it and after it."""
    libc, kept = ctypes.CDLL(None), Kept()
    libc.puts(b"before")
    with routed(stdout=kept):
        libc.puts(b"in it")
    libc.puts(b"after")
    flush_c(1)
    assert (b"in it\n", "before\nafter\n") == (os.read(kept.end, 100), capfd.readouterr().out)


def test_a_section_does_not_wait_for_streams_of_others() -> None:
    """Another thread reads with the C library, and holds the lock of that stream as long as nothing comes."""
    libc = ctypes.CDLL(None)
    libc.fdopen.restype = ctypes.c_void_p
    end, fd = os.pipe()
    stream = ctypes.c_void_p(libc.fdopen(end, b"r"))
    reading = threading.Thread(target=libc.getc, args=(stream,), daemon=True)
    reading.start()
    with routed(stdout=QUIET, stderr=QUIET):
        pass
    os.close(fd)
    reading.join(10)
    libc.fclose(stream)
    assert not reading.is_alive()


def test_a_process_gets_what_its_thread_is_on(capfd: pytest.CaptureFixture[str]) -> None:
    """The innermost section's descriptor, or where one led that leads elsewhere for others."""
    with routed(stdout=KEPT):
        assert (KEPT.fd, None) == (descriptor_for_processes(1), descriptor_for_processes(2))
        with routed(stderr=QUIET):
            assert (KEPT.fd, QUIET.descriptor()) == (descriptor_for_processes(1), descriptor_for_processes(2))
        with on_route(None):
            led = descriptor_for_processes(1)
            os.write(1 if led is None else led, b"as before\n")
    assert "as before\n" == capfd.readouterr().out


def _sections(call: int, seed: int, wrong: list[str]) -> None:
    """Enter sections at random in one call after another, and check what each of them gets of its own prints."""
    drawn = random.Random(seed)
    for number in range(20):
        context = task_context.TaskContext(call_id=call + 1000 * number, facts={}, membership={})
        token = task_context.set_context(context)
        for depth in range(drawn.randint(1, 3)):
            line = f"{call} {number} {depth}"
            heard: list[str] = []
            with redirect_output(heard.append):
                print(line)
                if drawn.random() < 0.2:
                    subprocess.run(["echo", f"{line} process"], check=True)
                if drawn.random() < 0.5:
                    silent(print)("never")
                os.write(1, b"of no call\n")
                libc_line = f"{line} last"
                print(libc_line)
            if [one for one in heard if one not in ("of no call", f"{line} process")] != [line, libc_line]:
                wrong.append(f"{line}: {heard}")
        task_context.reset_context(token)


def test_calls_that_enter_sections_at_random_leave_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Each gets its own lines, whatever the others do, and afterwards descriptors lead to where they led."""
    wrong: list[str] = []
    before = os.fstat(1).st_ino, os.fstat(2).st_ino
    threads = [threading.Thread(target=_sections, args=(call, call, wrong)) for call in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    assert (before, (None, None)) == (
        (os.fstat(1).st_ino, os.fstat(2).st_ino),
        (DESCRIPTORS.led(1), DESCRIPTORS.led(2)),
    )
    assert {"of no call"} >= set(capfd.readouterr().out.splitlines())
    assert set() == task_context.watchers
