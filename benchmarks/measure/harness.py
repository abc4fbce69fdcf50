"""
Runs each measurement in a process of its own, the measured systems taking turns.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs

from measure.peers import installed
from measure.quiet import wait_until_quiet
from measure.table import MISSING, Number

HERE = Path(__file__).resolve().parent.parent
FRAMEWORKS = HERE.parent / ".cache" / "frameworks" / "bin" / "python"
MARK = "measured: "
ABSENT = "not installed"


@attrs.frozen
class Job:
    """
    A command whose last line of output is its result as JSON.

    Args:
        command: Arguments of the process.
        needs: Name of the peer without which there is nothing to run, or "frameworks".
        timeout: Seconds after which the process is ended.
        repeats: Times it is run in each round.
    """

    command: tuple[str, ...]
    needs: str | None = None
    timeout: float = 300
    repeats: int = 1


@attrs.frozen
class Outcome:
    """
    What the runs of one job gave.

    Args:
        values: The numbers of each run that went well.
        failure: Why there are none, or why the last run failed.
    """

    values: tuple[Mapping[str, float], ...] = ()
    failure: str | None = None


Results = Mapping[str, Outcome]


def limit(script: str, repeats: int = 1) -> Job:
    """
    Run one of the measuring sticks, as it stands.
    """
    return Job((sys.executable, str(HERE / "limits" / script)), repeats=repeats)


def module(name: str, *args: str, needs: str | None = None, repeats: int = 1) -> Job:
    """
    Run a module of this package with arguments.
    """
    return Job((sys.executable, "-m", name, *args), needs=needs, repeats=repeats)


def in_frameworks(name: str, *args: str) -> Job:
    """
    Run a module of this package in the environment that has the frameworks, which `make frameworks` makes.
    """
    return Job((str(FRAMEWORKS), "-m", name, *args), needs="frameworks")


def answer(values: Mapping[str, float]) -> None:
    """
    Print a measurement's result, as its last act.
    """
    sys.stdout.flush()
    print(MARK + json.dumps(values), flush=True)


def run_once(job: Job) -> Mapping[str, float] | str:
    """
    Run a job once and give its numbers, or say in a line why there are none.
    """
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    # Byte code is written once, as in any installation, and not compiled in each process that is measured.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # Output goes to files: a peer's daemon that outlives its client would keep a pipe open.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            job.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        try:
            code = process.wait(job.timeout)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return f"not done within {job.timeout:g} s"
        out.seek(0)
        err.seek(0)
        for line in reversed(out.read().splitlines()):
            if line.startswith((MARK, "{")):
                return {name: float(value) for name, value in json.loads(line.removeprefix(MARK)).items()}
        said = err.read().strip().splitlines() or ["no output"]
        return f"exit code {code}: {said[-1][:200]}"


def take_turns(jobs: Mapping[str, Job], rounds: int, say: Callable[[str], None]) -> dict[str, Outcome]:
    """
    Run every job in each round, one after the other, so that a slow minute of the machine meets all of them.

    Those that are run several times a round take turns there too.
    """
    outcomes = {name: Outcome() for name in jobs}
    for turn in range(rounds):
        for again in range(max((job.repeats for job in jobs.values()), default=0)):
            for name, job in jobs.items():
                if again >= job.repeats:
                    continue
                if job.needs and not _is_there(job.needs):
                    outcomes[name] = Outcome(failure=ABSENT)
                    continue
                wait_until_quiet(say)
                result = run_once(job)
                before = outcomes[name]
                if isinstance(result, str):
                    outcomes[name] = attrs.evolve(before, failure=result)
                else:
                    outcomes[name] = attrs.evolve(before, values=(*before.values, result))
                said = result if isinstance(result, str) else ", ".join(f"{k} {v:.4g}" for k, v in result.items())
                say(f"round {turn + 1}/{rounds}  {name}: {said}")
    return outcomes


def _is_there(needs: str) -> bool:
    return FRAMEWORKS.exists() if needs == "frameworks" else installed(needs)


def number(
    results: Results, name: str, field: str, best: Callable[[Iterable[float]], float] = statistics.median
) -> Number:
    """
    Take one number from all runs of a job: the median, unless told otherwise.
    """
    outcome = results.get(name, Outcome(failure=MISSING))
    found = [values[field] for values in outcome.values if field in values]
    if outcome.failure:
        # The reason has a table of its own, so that this one stays readable.
        return Number(note=outcome.failure if outcome.failure in {ABSENT, MISSING} else "failed")
    if not found:
        return Number(note=MISSING)
    return Number(value=best(found))


def worst(results: Results, names: Mapping[str, str], field: str, choose: Callable[[Iterable[float]], float]) -> Number:
    """
    Take the worst number of several jobs, noting which one it was.

    Args:
        results: What was measured.
        names: The jobs' names by what the table calls them.
        field: Which of a job's numbers.
        choose: `max` where more is worse, else `min`.
    """
    return worst_of({meaning: number(results, name, field) for meaning, name in names.items()}, choose)


def worst_of(numbers: Mapping[str, Number], choose: Callable[[Iterable[float]], float]) -> Number:
    """
    Take the worst of several numbers, noting which one it was.

    >>> worst_of({"map": Number(3.0), "gather": Number(2.0)}, min)
    Number(value=2.0, note='worst with gather')

    Args:
        numbers: By what the table calls them.
        choose: `max` where more is worse, else `min`.
    """
    for meaning, found in numbers.items():
        if found.value is None:
            return Number(note=f"{found.note} ({meaning})")
    values = {meaning: found.value for meaning, found in numbers.items() if found.value is not None}
    extreme = choose(values.values())
    which = next(meaning for meaning, value in values.items() if value == extreme)
    return Number(value=extreme, note=f"worst with {which}")
