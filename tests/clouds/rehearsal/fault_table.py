"""The faults of the rehearsal cloud on the page of faults."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

import skyward as sky
from skyward.testing import (
    DiesInBootstrap,
    LostResponse,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    Rehearsal,
    TerminateFails,
    TooManyRequests,
    Unreachable,
)
from tests.clouds.provoking import WORKED, Row, add, living, said

TITLE = "The rehearsal cloud"


@frozen
class Rehearsed:
    """
    One fault of the rehearsal cloud.

    Args:
        name: What the page calls it.
        fault: The fault.
        works: Whether the pool works all the same.
        options: What the pool is given.
    """

    name: str
    fault: Any
    works: bool = True
    options: Mapping[str, Any] = field(factory=dict)


FAULTS = (
    Rehearsed("no capacity in one region", NoCapacity(region="north")),
    Rehearsed("no capacity anywhere", NoCapacity(), works=False),
    Rehearsed("quota", Quota(machines=0), works=False),
    Rehearsed("the answer to a launch is lost", LostResponse()),
    Rehearsed("never boots", NeverBoots(), options={"provision_timeout": 0.5}),
    Rehearsed("nobody gets in", Unreachable()),
    Rehearsed("dies during bootstrap", DiesInBootstrap()),
    Rehearsed("all machines die during bootstrap", DiesInBootstrap(times=99), works=False),
    Rehearsed("taken back", Preempt(after=0.3)),
    Rehearsed("terminate fails twice", TerminateFails(times=2)),
    Rehearsed("429, four times", TooManyRequests(times=4)),
)
"""All that is in the section, in its order."""


def cloud() -> contextlib.AbstractContextManager[None]:
    """Run nothing: every fault has a cloud of its own."""
    return contextlib.nullcontext()


def provoke(fault: Rehearsed, cloud: None = None) -> Row:
    """Have one fault happen to a pool, and see what comes of it."""
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    directory = tempfile.mkdtemp(prefix="sky-", dir="/tmp")
    provider = Rehearsal(faults=[fault.fault], directory=directory)
    options = {"provision_retry_delay": 0.05, "console": False, "logging": False, **fault.options}
    try:
        with sky.Compute(provider=provider, **options) as pool:
            assert 5 == (add(2, 3) >> pool)
        outcome = WORKED
    except sky.SkywardError as error:
        outcome = said(error)
    row = Row(outcome, len(provider.machines()), len(living(f"{directory}/hosts/", 10)))
    provider.clear()
    shutil.rmtree(directory, ignore_errors=True)
    return row
