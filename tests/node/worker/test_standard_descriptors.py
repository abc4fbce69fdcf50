"""Descriptors that lead elsewhere for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from skyward.node.worker.standard_descriptors import StandardDescriptors, write_all


class Pipe:
    """A pipe and what comes out of it."""

    def __init__(self) -> None:
        self.end, self.fd = os.pipe()
        os.set_blocking(self.end, False)

    def read(self) -> bytes:
        """Return what was written."""
        try:
            return os.read(self.end, 1 << 16)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self.end)
        os.close(self.fd)


@pytest.fixture
def pipes() -> Iterator[list[Pipe]]:
    """Three pipes: of a stream, and of two places to lead it to."""
    made = [Pipe() for _ in range(3)]
    yield made
    for pipe in made:
        pipe.close()


def test_a_descriptor_leads_elsewhere_and_back(pipes: list[Pipe]) -> None:
    """And its copy leads to where it led before, however often it is directed."""
    own, first, second = pipes
    descriptors = StandardDescriptors()
    for target in (first, second, first):
        descriptors.lead(own.fd, target.fd)
        os.write(own.fd, b"away")
        os.write(descriptors.unrouted(own.fd), b"as before")
        assert (b"away", b"as before") == (target.read(), own.read())
    descriptors.lead(own.fd, None)
    assert (own.fd, None) == (descriptors.unrouted(own.fd), descriptors.led(own.fd))
    os.write(own.fd, b"back")
    assert b"back" == own.read()


def test_what_a_program_directs_itself_is_directed_back(pipes: list[Pipe]) -> None:
    """A descriptor leads to where it led just before it was directed elsewhere, and not where it led once."""
    own, first, second = pipes
    descriptors = StandardDescriptors()
    descriptors.lead(own.fd, first.fd)
    descriptors.lead(own.fd, None)
    os.dup2(second.fd, own.fd)
    descriptors.lead(own.fd, first.fd)
    descriptors.lead(own.fd, None)
    os.write(own.fd, b"back")
    assert b"back" == second.read()


def test_copies_are_few_and_no_program_that_is_started_has_them(pipes: list[Pipe]) -> None:
    """A descriptor has one, whose number stays, so that threads may write to it at any time."""
    descriptors = StandardDescriptors()
    copies = {descriptors.copy(pipes[0].fd) for _ in range(10)}
    assert 1 == len(copies)
    assert not os.get_inheritable(*copies)


def test_a_process_is_started_with_what_was_before(pipes: list[Pipe]) -> None:
    """In the block all descriptors lead to where they led before, and elsewhere again afterwards."""
    own, first, _ = pipes
    descriptors = StandardDescriptors()
    descriptors.lead(own.fd, first.fd)
    with descriptors.as_before():
        os.write(own.fd, b"before")
    os.write(own.fd, b"away")
    assert (b"before", b"away") == (own.read(), first.read())


def test_a_closed_descriptor_is_an_error(pipes: list[Pipe]) -> None:
    """And leaves nothing behind that would be taken for a direction."""
    closed = os.dup(pipes[0].fd)
    os.close(closed)
    descriptors = StandardDescriptors()
    with pytest.raises(OSError, match="Bad file descriptor"):
        descriptors.lead(closed, pipes[1].fd)
    assert (None, closed) == (descriptors.led(closed), descriptors.unrouted(closed))


def test_all_is_written_to_a_pipe_that_is_not_blocking(pipes: list[Pipe]) -> None:
    """Where a process that shares it has made it so."""
    import threading

    pipe, size = pipes[0], 1 << 20
    os.set_blocking(pipe.fd, False)
    writing = threading.Thread(target=write_all, args=(pipe.fd, b"x" * size))
    writing.start()
    got = 0
    while got < size:
        got += len(pipe.read())
    writing.join()
    assert size == got
