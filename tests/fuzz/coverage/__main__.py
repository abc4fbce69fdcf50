"""
Fuzz whatever reads bytes of a link, guided by coverage: `python tests/fuzz/coverage --seconds 600`.

It needs the package `atheris`, and is no part of the test suite.
An input is a script of steps, of which `fuzz_scripts.py` tells, and `fuzz_composer.py` makes nearly right ones.
A finding is whatever is neither a `ProtocolError` nor a `TransportError` that closes the link it came on:
another exception, a bug that a channel notes as `link.failed`, a hang, a descriptor that stays open,
bytes of ours that our own parser refuses, a frame that arrives twice, memory that an end fills which never reads,
and a second link in the same loop that answers no more.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import io
import os
import pkgutil
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import atheris

import skyward

INSTRUMENTED = ("skyward.link", "skyward.node", "skyward.engine.nodes.node_shell")


def _others() -> list[str]:
    """List the modules that are not instrumented, because atheris includes whole packages only."""
    found = pkgutil.walk_packages(skyward.__path__, "skyward.", onerror=lambda _: None)
    return [module.name for module in found if not f"{module.name}.".startswith(tuple(f"{i}." for i in INSTRUMENTED))]


# Run as a folder, it finds only what is in that; the tests' own modules are above.
sys.path.append(str(Path(__file__).resolve().parents[3]))

# Nothing of skyward but the package itself is imported before.
with atheris.instrument_imports(include=["skyward"], exclude=_others()), contextlib.redirect_stderr(io.StringIO()):
    from fuzz_agent import AgentWorld, no_processes
    from fuzz_composer import Composer
    from fuzz_findings import Findings, Watch
    from fuzz_scripts import LONGEST, TARGETS, describe
    from fuzz_worlds import run_script


class Fuzzer:
    """
    Run inputs until the time is over.

    Args:
        seconds: How long.
        seed: What everything that is drawn is decided by.
        corpus: Where inputs that reached something new are kept.
        log: What libFuzzer writes.
    """

    def __init__(self, seconds: float, seed: int, corpus: Path, log: Path) -> None:
        self._findings = Findings(Watch(run_script))
        self._began = time.monotonic()
        self._end = self._began + seconds
        self._seed = seed
        self._corpus = corpus
        self._log = log
        self._inputs = 0

    def take(self, data: bytes) -> None:
        """Run one input that libFuzzer made."""
        if not self._inputs % 256:
            # For what hangs outside Python, where no signal is handled.
            faulthandler.dump_traceback_later(120, exit=True, file=sys.__stdout__)
        self._inputs += 1
        self._findings.take(data)
        if time.monotonic() >= self._end:
            self._finish()

    def _finish(self) -> NoReturn:
        """Tell what was found, and leave without a word of libFuzzer's."""
        faulthandler.cancel_dump_traceback_later()
        seconds = time.monotonic() - self._began
        self._findings.tell(self._corpus)
        edges = re.findall(rb"cov: (\d+)", self._log.read_bytes())
        print(
            f"{self._inputs} inputs in {seconds:.0f} s, {int(edges[-1]) if edges else 0} coverage edges, "
            f"{len(self._findings)} findings (seed {self._seed})",
            flush=True,
        )
        os._exit(1 if self._findings else 0)


def _quiet(log: Path) -> None:
    """Send descriptor 2 to a file, because libFuzzer writes there what only we read."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)


def main() -> None:
    """Read the command line and fuzz."""
    parser = argparse.ArgumentParser(description="Fuzz whatever reads bytes of a link, guided by coverage.")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None, help="decides what is drawn; by default a new one")
    parser.add_argument("--corpus", type=Path, default=None, help="a folder for inputs that reached something new")
    parser.add_argument("--replay", type=Path, default=None, help="run one input and tell what goes wrong")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    (home / "agent").mkdir()
    AgentWorld.directory = home / "agent"
    no_processes()
    gc.collect()
    gc.freeze()  # what is here stays, and need not be looked at for each leak
    if given.replay is not None:
        data = given.replay.read_bytes()
        print("\n".join(describe(data)))
        caught = Watch(run_script).run(data)
        print("\n".join(f"{one.key}\n{one.text}" for one in caught) or "nothing goes wrong")
        shutil.rmtree(home)
        sys.exit(bool(caught))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    corpus = given.corpus or home / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = home / "seeds"
    seeds.mkdir()
    for number in range(400):
        (seeds / f"{number:03}").write_bytes(Composer(seed * 1000 + number).script(number % len(TARGETS)))
    fuzzer = Fuzzer(given.seconds, seed, corpus, home / "log")

    def mutate(data: bytes, most: int, draw: int) -> bytes:
        if draw % 4 == 0:
            return bytes(atheris.Mutate(data, most))
        return Composer(draw).change(data, most)

    # A child does the work, so that what it leaves is removed however it ends.
    child = os.fork()
    if not child:
        _quiet(home / "log")
        options = ("timeout=0", "rss_limit_mb=4096", f"max_len={LONGEST}", "len_control=0", f"seed={seed & 0xFFFFFFFF}")
        take: Callable[[bytes], None] = fuzzer.take
        atheris.Setup(
            [sys.argv[0], str(corpus), str(seeds), *(f"-{option}" for option in options)], take, custom_mutator=mutate
        )
        atheris.Fuzz()
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code not in (0, 1):
            print((home / "log").read_text(errors="replace")[-4000:])
            print(f"The fuzzer itself ended with {code} (seed {seed}).")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
