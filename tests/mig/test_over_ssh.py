"""GPUs of a machine over SSH: found, cut into as many slices as they have, whole again after the watchdog's work."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import skyward as sky
from tests.hosts import SSHD, Host, hosts
from tests.nvidia.machine import Gpus

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="there is no SSH server here")


@pytest.fixture
def site() -> Iterator[tuple[Host, Path, Gpus]]:
    """Run a host that has a GPU."""
    with hosts(1) as ((host,), key):
        yield host, key, Gpus(host.base / "bin", host.base / "nvidia", "A100-SXM4-80GB", "A100-SXM4-80GB")


@pytest.mark.slow
def test_a_rank_on_each_slice(site: tuple[Host, Path, Gpus]) -> None:
    """What the host has says how many, and a layout that does not fit is refused before anything is cut."""
    host, key, gpus = site
    provider = sky.SSH([f"{host.address}:{host.port}"], key=str(key), known_hosts=str(key.with_name("known_hosts")))
    plugins = [sky.plugins.mig("4g.40gb")]
    with (
        pytest.raises(
            sky.ConfigError, match=r"per_node=3 asks for more ranks than there are slices.* which is 2 × 4g.40gb"
        ),
        sky.Compute(
            provider=provider, accelerator="A100:2", per_node=3, plugins=plugins, console="silent", logging=False
        ),
    ):
        raise AssertionError
    wanted = sky.accelerators.A100(count=2, mig="4g.40gb")
    with (
        pytest.raises(
            sky.ConfigError, match=r"asks for slices of 4g\.40gb, and no plugin .*plugins=\[sky\.plugins\.mig"
        ),
        sky.Compute(provider=provider, accelerator=wanted, console="silent", logging=False),
    ):
        raise AssertionError
    assert [] == gpus.asked
    with sky.Compute(
        provider=provider, accelerator=wanted, plugins=[sky.plugins.mig()], console="silent", logging=False
    ) as pool:
        assert gpus.slices == sky.function(lambda: os.environ["CUDA_VISIBLE_DEVICES"])() @ pool
        assert 2 == len(gpus.slices)
    assert [("Disabled", []), ("Disabled", [])] == gpus.cut


@pytest.mark.slow
def test_a_node_that_fails_while_its_gpus_are_put_together(site: tuple[Host, Path, Gpus]) -> None:
    """The process that had them cut is killed, and the node's agent ends all it has; undoing goes on to its end."""
    host, key, gpus = site
    provider = sky.SSH([f"{host.address}:{host.port}"], key=str(key), known_hosts=str(key.with_name("known_hosts")))

    with (
        (gpus.kept / "lock").open("w") as lock,
        sky.Compute(
            provider=provider, plugins=[sky.plugins.mig("3g.40gb")], per_node=2, console="silent", logging=False
        ) as pool,
    ):
        agent = sky.function(os.getppid)() >> pool
        (app_host,) = [pid for pid in host.processes() if _is_app_host(pid, of=agent)]
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.kill(app_host, signal.SIGKILL)
        _until(lambda: not Path(f"/proc/{agent}").exists())
        fcntl.flock(lock, fcntl.LOCK_UN)
    _until(lambda: [("Disabled", []), ("Disabled", [])] == gpus.cut and not host.processes())


def _is_app_host(pid: int, *, of: int) -> bool:
    """Tell whether a process is an agent's app host."""
    about = Path(f"/proc/{pid}")
    with suppress(OSError):
        parent = int((about / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == of and b"skyward.node.agent.app_host" in (about / "cmdline").read_bytes()
    return False


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 50
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.everything
@pytest.mark.slow
def test_the_watchdogs_work(site: tuple[Host, Path, Gpus], tmp_path: Path) -> None:
    """A client is killed, its node hears no more from it and is killed; its GPUs are whole nevertheless."""
    host, key, gpus = site
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        import skyward as sky
        provider = sky.SSH(
            ["{host.address}:{host.port}"], key={str(key)!r}, known_hosts={str(key.with_name("known_hosts"))!r}
        )
        plugins = [sky.plugins.mig("3g.40gb")]
        with sky.Compute(provider=provider, plugins=plugins, per_node=2, console="silent", logging=False, ttl=10):
            print("ready", flush=True)
            time.sleep(300)
        """)
    )
    client = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout is not None
        assert "ready\n" == client.stdout.readline()
        assert [("Enabled", ["3g.40gb"]), ("Enabled", ["3g.40gb"])] == gpus.cut
    finally:
        client.kill()
        client.communicate()
    _until(lambda: [("Disabled", []), ("Disabled", [])] == gpus.cut and not host.processes())
