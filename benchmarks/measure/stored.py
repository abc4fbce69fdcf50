"""
Figures of earlier runs, so that one subject can be measured anew and the page still shows them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from measure.harness import Outcome, Results


@attrs.frozen
class Measured:
    """
    What a subject's jobs gave in one run.

    Args:
        day: When that was, as YYYY-MM-DD.
        rounds: How often each job took its turn.
        results: The outcomes, by job.
    """

    day: str
    rounds: int
    results: Results


def to_json(machine: str, subjects: Mapping[str, Measured]) -> str:
    """
    Write figures as text, which is the same for the same figures.

    Args:
        machine: What they were measured on, with the versions of what was measured.
        subjects: What was measured, by subject.
    """
    document = {
        "machine": machine,
        "subjects": {
            name: {
                "day": measured.day,
                "rounds": measured.rounds,
                "jobs": {
                    job: {"values": [dict(values) for values in outcome.values], "failure": outcome.failure}
                    for job, outcome in measured.results.items()
                },
            }
            for name, measured in subjects.items()
        },
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def of_json(text: str, machine: str) -> dict[str, Measured]:
    """
    Read figures; none of those that another machine or other versions gave.

    >>> kept = {"calls": Measured("2026-11-25", 3, {"no-op": Outcome(({"ms": 0.5},))})}
    >>> of_json(to_json("2 cores", kept), "2 cores") == kept, of_json(to_json("2 cores", kept), "4 cores")
    (True, {})

    Args:
        text: What `to_json` wrote.
        machine: What is measured on now.
    """
    document = json.loads(text)
    if document["machine"] != machine:
        return {}
    return {name: _measured(found) for name, found in document["subjects"].items()}


def _measured(found: Mapping[str, Any]) -> Measured:
    results = {job: Outcome(tuple(of["values"]), of["failure"]) for job, of in found["jobs"].items()}
    return Measured(found["day"], found["rounds"], results)


def read(path: Path, machine: str) -> dict[str, Measured]:
    """
    Read a file of figures; none if there is no such file.
    """
    return of_json(path.read_text(encoding="utf-8"), machine) if path.exists() else {}


def when(subjects: Mapping[str, Measured], names: Iterable[str]) -> str:
    """
    Say when, and in how many rounds, subjects were measured.

    >>> when({"calls": Measured("2026-11-25", 3, {}), "data": Measured("2026-11-25", 3, {})}, ["calls", "data"])
    '2026-11-25, 3 rounds'
    >>> when({"calls": Measured("2026-11-25", 3, {}), "data": Measured("2026-11-24", 1, {})}, ["calls", "data"])
    '2026-11-25, 3 rounds (calls); 2026-11-24, 1 round (data)'
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for name in names:
        if name in subjects:
            groups.setdefault((subjects[name].day, subjects[name].rounds), []).append(name)
    said = {f"{day}, {rounds} round{'s' if rounds > 1 else ''}": ", ".join(of) for (day, rounds), of in groups.items()}
    return next(iter(said)) if len(said) == 1 else "; ".join(f"{what} ({of})" for what, of in said.items())
