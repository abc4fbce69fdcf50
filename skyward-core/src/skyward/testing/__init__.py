"""
What programs and providers are tried with: a cloud that fails on purpose, and the checks that a provider has to pass.

>>> from skyward.testing import Preempt, Rehearsal
>>> Rehearsal(faults=[Preempt(after=2.0)])
Rehearsal(faults=(Preempt(after=2.0),), seed=0)
"""

from __future__ import annotations

from skyward.testing.fault import (
    DiesInBootstrap,
    Fault,
    ListingLag,
    LostResponse,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    SlowApi,
    SlowBoot,
    TerminateFails,
    TooManyRequests,
    Unreachable,
)
from skyward.testing.rehearsal import Rehearsal

__all__ = ["DiesInBootstrap", "Fault", "ListingLag", "LostResponse", "NeverBoots", "NoCapacity", "Preempt", "Quota"]
__all__ += ["Rehearsal", "SlowApi", "SlowBoot", "TerminateFails", "TooManyRequests", "Unreachable"]
