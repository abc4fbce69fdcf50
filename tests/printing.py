"""
Every way in which a task may print, every section that it may print in, and what is promised for each pair.

Run as a program it tries them where there is no pool, and writes to a file what the callback got in each.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import skyward as sky

Way = Callable[[str, str], None]
Section = Callable[[Callable[[], object], list[str]], object]


def by_print(out: str, err: str) -> None:
    print(out)
    print(err, file=sys.stderr)


def by_stream(out: str, err: str) -> None:
    sys.stdout.write(out + "\n")
    sys.stderr.write(err + "\n")


def by_buffer(out: str, err: str) -> None:
    for stream, line in ((sys.stdout, out), (sys.stderr, err)):
        stream.buffer.write(f"{line}\n".encode())
        stream.buffer.flush()


def by_logging(out: str, err: str) -> None:
    for stream, line in ((sys.stdout, out), (sys.stderr, err)):
        logger = logging.Logger("printing")  # noqa: LOG001  # one that no other task has
        logger.addHandler(logging.StreamHandler(stream))
        logger.warning(line)


def by_warning(out: str, err: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(err, stacklevel=1)


def by_descriptor(out: str, err: str) -> None:
    os.write(1, f"{out}\n".encode())
    os.write(2, f"{err}\n".encode())


def by_c(out: str, err: str) -> None:
    """Print with the C library, which holds stdout back, and flush nothing."""
    libc = ctypes.CDLL(None)
    libc.puts(out.encode())
    libc.fputs(f"{err}\n".encode(), ctypes.c_void_p.in_dll(libc, "__stderrp" if sys.platform == "darwin" else "stderr"))


def by_system(out: str, err: str) -> None:
    os.system(_echo(out, err))


def by_subprocess(out: str, err: str) -> None:
    subprocess.run(["sh", "-c", _echo(out, err)], check=True)


def by_subprocess_given_streams(out: str, err: str) -> None:
    subprocess.run(["sh", "-c", _echo(out, err)], check=True, stdout=sys.stdout, stderr=sys.stderr)


def by_subprocess_of_asyncio(out: str, err: str) -> None:
    async def run() -> None:
        process = await asyncio.create_subprocess_shell(_echo(out, err))
        await process.wait()

    asyncio.run(run())
    # Python 3.11 waits for each process in a thread, which may be about to end.
    for thread in threading.enumerate():
        if thread.name.startswith("waitpid"):
            thread.join(10)


def by_fork(out: str, err: str) -> None:
    """Print in a child of `multiprocessing` in every way that there is in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=by_print, args=(out, err))
    process.start()
    process.join()


def by_descriptor_in_fork(out: str, err: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=by_descriptor, args=(out, err))
    process.start()
    process.join()


def by_spawn(out: str, err: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=os.system, args=(_echo(out, err),))
    process.start()
    process.join()


def by_fork_server(out: str, err: str) -> None:
    process = multiprocessing.get_context("forkserver").Process(target=os.system, args=(_echo(out, err),))
    process.start()
    process.join()


def by_thread(out: str, err: str) -> None:
    thread = threading.Thread(target=by_print, args=(out, err))
    thread.start()
    thread.join()


def by_executor(out: str, err: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(by_print, out, err).result()


def by_thread_of_asyncio(out: str, err: str) -> None:
    asyncio.run(asyncio.to_thread(by_print, out, err))


def _echo(out: str, err: str) -> str:
    return f"echo '{out}'; echo '{err}' >&2"


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        by_print,
        by_stream,
        by_buffer,
        by_logging,
        by_warning,
        by_descriptor,
        by_c,
        by_system,
        by_subprocess,
        by_subprocess_given_streams,
        by_subprocess_of_asyncio,
        by_fork,
        by_descriptor_in_fork,
        by_thread,
        by_executor,
        by_thread_of_asyncio,
    )
}
SLOW_WAYS: dict[str, Way] = {way.__name__: way for way in (by_spawn, by_fork_server)}
"""Those that start an interpreter."""

OF_PROCESS = {"by_descriptor", "by_c", "by_system"}
"""Those that write to descriptors that all calls of a process share."""

OF_NO_CALL = {"by_thread", "by_executor"}
"""Those in which nothing says for which call a thread works."""


def nothing(run: Callable[[], object], heard: list[str]) -> object:
    return run()


def silent(run: Callable[[], object], heard: list[str]) -> object:
    return sky.silent(run)()


def stdout_elsewhere(run: Callable[[], object], heard: list[str]) -> object:
    return sky.stdout(only=lambda info: not info.is_head)(run)()


def stdout_here(run: Callable[[], object], heard: list[str]) -> object:
    return sky.stdout(only="head")(run)()


def stderr_elsewhere(run: Callable[[], object], heard: list[str]) -> object:
    return sky.stderr(only=lambda info: not info.is_head)(run)()


def redirected(run: Callable[[], object], heard: list[str]) -> object:
    with sky.redirect_output(heard.append):
        return run()


def silent_in_redirection(run: Callable[[], object], heard: list[str]) -> object:
    with sky.redirect_output(heard.append):
        return sky.silent(run)()


def redirected_in_silence(run: Callable[[], object], heard: list[str]) -> object:
    return sky.silent(lambda: redirected(run, heard))()


def stdout_elsewhere_in_redirection(run: Callable[[], object], heard: list[str]) -> object:
    with sky.redirect_output(heard.append):
        return stdout_elsewhere(run, heard)


PROMISED: dict[str, tuple[set[str], set[str]]] = {
    "nothing": ({"out", "err"}, set()),
    "silent": (set(), set()),
    "stdout_elsewhere": ({"err"}, set()),
    "stdout_here": ({"out", "err"}, set()),
    "stderr_elsewhere": ({"out"}, set()),
    "redirected": (set(), {"out", "err"}),
    "silent_in_redirection": (set(), set()),
    "redirected_in_silence": (set(), {"out", "err"}),
    "stdout_elsewhere_in_redirection": (set(), {"err"}),
}
"""Of what is printed in a section: what is shown, and what the callback gets."""

SECTIONS: dict[str, Section] = {name: globals()[name] for name in PROMISED}


def cells(ways: Iterable[str]) -> list[tuple[str, str]]:
    """Return all pairs of a way and a section."""
    return [(way, section) for way in ways for section in SECTIONS]


def lines_of(way: str, section: str) -> dict[str, str]:
    """Return the line that is printed to each stream."""
    lines = {stream: f"{way} {section} to {stream}" for stream in ("out", "err")}
    return {"err": lines["err"]} if way == "by_warning" else lines


def try_cell(way: str, section: str) -> list[str]:
    """Print in one way in one section, and return what its callback was given."""
    heard: list[str] = []
    lines = [f"{way} {section} to {stream}" for stream in ("out", "err")]
    SECTIONS[section](lambda: ({**WAYS, **SLOW_WAYS})[way](*lines), heard)
    return heard


def found(way: str, section: str, shown: str, heard: list[str]) -> tuple[set[str], set[str]]:
    """Return of what was printed in a cell: which streams' lines are in a text, and which the callback got."""
    lines = lines_of(way, section)
    return (
        {stream for stream, line in lines.items() if line in shown.splitlines() or _warned(line, shown)},
        {stream for stream, line in lines.items() if line in heard or _warned(line, "\n".join(heard))},
    )


def _warned(line: str, text: str) -> bool:
    return any(said.endswith(f"UserWarning: {line}") for said in text.splitlines())


def promised(way: str, section: str, *, by_itself: bool) -> tuple[set[str], set[str]]:
    """
    Return what is promised of a cell.

    Args:
        way: How is printed.
        section: In which section.
        by_itself: Whether nothing else in the process may print, neither calls nor threads of others.
    """
    streams = set(lines_of(way, section))
    if not by_itself and way in OF_PROCESS | OF_NO_CALL:
        return streams, set()
    shown, heard = PROMISED[section]
    return shown & streams, heard & streams


def main(report: str, *beside: str) -> None:
    """Try all cells in this program, beside a thread of each name that is given, and write what callbacks got."""
    done = threading.Event()
    for name in beside:
        threading.Thread(target=done.wait, name=name).start()
    heard = {f"{way} {section}": try_cell(way, section) for way, section in cells(WAYS)}
    done.set()
    Path(report).write_text(json.dumps(heard))


if __name__ == "__main__":
    main(*sys.argv[1:])
