"""Machines that end their own bill once they run are ended by a guardian if they never do and the client is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.clouds.cloud import ROOT, Cloud
from tests.clouds.renting.dialect import Dialect, dialects
from tests.seeds import some
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(120)]

_CLIENT = """
    import os, signal
    from tests.clouds.{name}.cloud import Cloud
    import skyward as sky
    import skyward.engine.guardian.guardian_client
    # So long an empty list is not believed; a minute outside of tests.
    skyward.engine.guardian.guardian_client.APPEARING = 3.0

    def die(event):
        if isinstance(event, sky.InstanceLaunched):
            os.kill(os.getpid(), signal.SIGKILL)

    provider = Cloud({url!r}, {folder!r}).provider()
    with sky.Compute(provider=provider, ttl=3, allocation="on-demand", console=False, logging=False, on_event=die):
        pass
"""


CONTAINERS = [one for one in dialects() if one.name in ("runpod", "vastai")]


# The conformance checks of each have a guardian end what never runs.
@pytest.mark.parametrize("dialect", some("clouds of containers", CONTAINERS), ids=lambda each: each.name)
def test_what_never_runs_does_not_outlive_a_client_that_is_killed(
    dialect: Dialect, cloud: Cloud, tmp_path: Path
) -> None:
    """Nothing else would end it: its own key is of use only where it runs."""
    cloud.fault(dialect.launch, "never", times=9)
    script, state = tmp_path / "main.py", tmp_path / "state"
    script.write_text(textwrap.dedent(_CLIENT.format(name=dialect.name, url=cloud.url, folder=cloud.folder)))
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "SKYWARD_STATE": str(state), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        # A guardian that holds them would be waited for.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode
    assert 1 == len(cloud.alive())
    log = state / "guardian.log"
    until(lambda: log.exists() and "all its machines are gone" in log.read_text(), 60)
    assert [] == cloud.alive()
