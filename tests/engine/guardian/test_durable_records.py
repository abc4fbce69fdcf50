"""What is known of machines when the client is dead: a request is written down before the cloud hears of it."""

from __future__ import annotations

from attrs import evolve

from skyward.testing import NoCapacity
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import SMALL, Fails, ScriptedCloud


def test_a_request_is_written_down_before_it_is_sent(engine: SimulatedEngine) -> None:
    """Each of them; what came of it follows, and then each machine's end."""
    cloud, early = ScriptedCloud(Fails("launch")), []

    def look(hook: str) -> None:
        if hook == "launch":
            early.append(cloud.requests[-1].token in engine.journals[0].tokens)

    cloud.when = look
    pool, _ = compute(cloud, nodes=2)
    with pool:
        [journal] = engine.journals
        assert {("cloud-0", "cloud-1")} == {*journal.ids.values()}
        assert set() == journal.gone
    assert [True, True] == early
    assert ({"cloud-0", "cloud-1"}, True) == (journal.gone, journal.closed)


def test_a_request_that_was_refused_rented_nothing(engine: SimulatedEngine) -> None:
    """And is written down as answered."""
    cloud = ScriptedCloud(NoCapacity(spot=True))
    pool, _ = compute(cloud)
    with pool:
        [journal] = engine.journals
        assert [(), ("cloud-0",)] == [journal.ids[token] for token in journal.tokens]


def test_nothing_is_written_down_where_nothing_is_billed(engine: SimulatedEngine) -> None:
    """A user who stays at home has no database."""
    cloud = ScriptedCloud(offers=(evolve(SMALL, spot_price=None, on_demand_price=0.0),))
    pool, _ = compute(cloud)
    with pool:
        assert [] == engine.journals
    assert [] == cloud.there
