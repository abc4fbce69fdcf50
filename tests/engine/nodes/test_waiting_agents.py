"""Agents that start before it is known which node they are for."""

from __future__ import annotations

import os
from pathlib import Path

from skyward.engine.nodes.local_host import LocalHost
from skyward.engine.nodes.waiting_agents import WaitingAgents, start_agent, waiting_agents
from tests.engine.nodes.test_local_host import _prepare

ENV = dict(os.environ)


def test_a_node_takes_an_agent_that_waits(tmp_path: Path) -> None:
    """It makes the directory of the node that it is sent, and removes it when its client leaves."""
    directory = tmp_path / "pool" / "node-0"
    host = LocalHost(None, directory, "waiting-agent", env=ENV, prepare=_prepare)  # type: ignore[arg-type]
    with waiting_agents.started(1, ENV):
        (waits,) = waiting_agents._waiting
        connection = host.start()
    assert host._process is waits.agent.process
    connection.close()
    assert 0 == host._process.wait(40)
    assert not directory.exists()
    host._end(0.0)


def test_what_no_node_takes_is_ended() -> None:
    """At the end of the block, however it is left."""
    agents = WaitingAgents()
    with agents.started(1, ENV):
        (waits,) = agents._waiting
        assert waits.agent.process.poll() is None
    assert waits.agent.process.returncode is not None
    assert agents.take(ENV, "/nowhere", "mark") is None


def test_an_agent_with_another_environment_is_not_taken() -> None:
    """Its tasks would see what another image says."""
    agents = WaitingAgents()
    with agents.started(1, ENV):
        assert agents.take({**ENV, "OTHER": "1"}, "/nowhere", "mark") is None


def test_no_more_agents_are_started_than_there_are_processors() -> None:
    """The others start with their nodes."""
    agents = WaitingAgents()
    with agents.started(10_000, ENV):
        assert len(agents._waiting) == os.cpu_count()
    with agents.started(0, ENV):
        assert agents._waiting == []


def test_an_agent_that_is_sent_no_node_ends_with_its_client() -> None:
    """The end of the socket means that the client is gone."""
    agent = start_agent(ENV, waits=True)
    agent.connection.close()
    assert 0 == agent.process.wait(40)
    agent.log.close()
