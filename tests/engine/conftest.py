"""What tests of a machine's life have in common: an engine on a virtual clock, and clouds that are empty at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulated.engine import SimulatedEngine, simulated_engine


@pytest.fixture
def engine() -> Iterator[SimulatedEngine]:
    """An engine of its own, whose time passes only while the test waits."""
    with simulated_engine() as engine:
        yield engine
