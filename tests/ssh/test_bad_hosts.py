"""What can be wrong with a host is said in one clear error, and nothing is left there."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.errors import CapacityError, ConfigError, CredentialsError, HostKeyError, ProvisionError, TransportError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh.dial import dial
from tests.hosts import Host
from tests.ssh.conftest import Site

_TOOLS = """sh cat cut dd sed tr grep uname id mkdir rm mv ln tail nproc df date basename tar gzip dirname sleep setsid
wc nohup flock readlink rmdir env kill getconf"""


def _refused(provider: sky.SSH, **options: Any) -> sky.SkywardError:
    compute = sky.Compute(**{"provider": provider, "console": "silent", "logging": False, **options})
    with pytest.raises(sky.SkywardError) as caught, compute:
        pass
    return caught.value


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyward.providers.ssh.LOOKING", 0.3)


def test_unknown_host(site: Site) -> None:
    """The name is repeated."""
    error = _refused(site.provider(hosts=["no-such-host.invalid"]))
    assert isinstance(error, TransportError)
    assert "no-such-host.invalid" in str(error)


def test_port_that_nobody_listens_at(site: Site) -> None:
    """Tried for a while, then given up."""
    error = _refused(site.provider(hosts=["127.0.0.2:1"]))
    assert isinstance(error, TransportError)
    assert "127.0.0.2:1 cannot be reached" in str(error)


def test_wrong_key(site: Site, tmp_path: Path) -> None:
    """It says which key was tried."""
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    error = _refused(site.provider(key=str(other)))
    assert isinstance(error, CredentialsError)
    assert str(other) in str(error)


def test_key_that_is_not_there(site: Site) -> None:
    """Its path is repeated."""
    error = _refused(site.provider(key="/no/such/key"))
    assert isinstance(error, ConfigError)
    assert "/no/such/key" in str(error)


@pytest.mark.slow
def test_changed_host_key(site: Site) -> None:
    """It is said loudly, with the fingerprint and what to do."""
    with sky.Compute(provider=site.provider(), console="silent", logging=False):
        pass
    host = site.hosts[0]
    host.stop()
    host.new_host_key()
    host.start()
    error = _refused(site.provider())
    assert isinstance(error, HostKeyError)
    assert "HAS CHANGED" in str(error)
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(host.base / "host_key.pub")], check=True, capture_output=True, text=True
    )
    assert shown.stdout.split()[1] in str(error)


def test_pinned_fingerprint(site: Site) -> None:
    """The host whose key has it is entered, and one whose key has another is sent nothing."""
    host = site.hosts[0]
    printed = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(host.base / "host_key.pub")], check=True, capture_output=True, text=True
    )
    right, wrong = printed.stdout.split()[1], f"SHA256:{'A' * 43}"
    address = SSHAddress(host=host.address, port=host.port, user="root", keys=[str(site.key)], fingerprints=[right])

    async def said(address: SSHAddress) -> str:
        async with await dial(address, patience=20.0) as connection:
            return str((await connection.run("echo there")).stdout).strip()

    assert "there" == asyncio.run(said(address))
    with pytest.raises(HostKeyError, match=r"IS NOT THE EXPECTED ONE.*Nothing was sent") as caught:
        asyncio.run(said(evolve(address, fingerprints=[wrong])))
    assert right in str(caught.value)
    assert wrong in str(caught.value)
    assert 1 == host.entered()


def test_unknown_host_key_where_only_known_ones_are_trusted(site: Site) -> None:
    """The file is named, and nothing is written to it."""
    error = _refused(site.provider(trust="known"))
    assert isinstance(error, HostKeyError)
    assert str(site.known_hosts) in str(error)
    assert not site.known_hosts.exists()


def test_more_nodes_than_hosts(site: Site) -> None:
    """Before anything is done."""
    error = _refused(site.provider(), nodes=2)
    assert isinstance(error, CapacityError)
    assert "2 nodes" in str(error)


def test_accelerator_that_the_host_lacks(site: Site) -> None:
    """It says what is there."""
    assert "no accelerator" in str(_refused(site.provider(), accelerator="A100"))


@pytest.mark.slow
def test_accelerator_that_the_host_has(site: Site) -> None:
    """Read from nvidia-smi; tasks have it in the catalogue's words."""
    _program(site.hosts[0], "nvidia-smi", "echo 'NVIDIA A100-SXM4-80GB, 81920'; echo 'NVIDIA A100-SXM4-80GB, 81920'")
    with sky.Compute(provider=site.provider(), accelerator="A100:2", console="silent", logging=False) as pool:
        info = sky.function(sky.instance_info)() >> pool
        assert info.accelerators == 2
        assert (info.gpu_model, info.accelerator.type, info.accelerator.memory_gb) == ("A100", "A100", 80)
    assert "2 × NVIDIA A100" in str(_refused(site.provider(), accelerator="H100"))


def _program(host: Host, name: str, body: str) -> None:
    path = host.base / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_host_whose_home_cannot_be_written_to(site: Site) -> None:
    """The directory is named."""
    (site.hosts[0].base / "home" / ".cache").write_text("a file stands where a folder has to be")
    error = _refused(site.provider())
    assert isinstance(error, ProvisionError)
    assert "cannot be written to" in str(error)


@pytest.mark.slow
def test_host_without_room(site: Site) -> None:
    """It says how much there is."""
    _program(site.hosts[0], "df", "echo header; echo '/dev/x 100 90 10 90% /'")
    error = _refused(site.provider())
    assert "0 MB left" in str(error)


@pytest.mark.slow
def test_bootstrap_that_takes_too_long(site: Site) -> None:
    """The phase is named; nothing goes on there."""
    slow = sky.Plugin.create("slow").with_bootstrap(lambda cluster: ["sleep 1000"])
    error = _refused(site.provider(), plugins=[slow], bootstrap_timeout=3, max_provision_attempts=1)
    assert isinstance(error, ProvisionError)
    assert "was not ready within 3 s" in str(error)
    assert "plugins" in str(error)
    assert not any(b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in site.hosts[0].processes())


@pytest.mark.slow
def test_step_that_fails(site: Site) -> None:
    """Its last lines, its command, and its host."""
    broken = sky.Plugin.create("broken").with_bootstrap(lambda cluster: ["echo before; echo oops >&2; exit 3"])
    error = _refused(site.provider(), plugins=[broken], max_provision_attempts=1)
    assert "phase 'plugins' of the bootstrap failed with code 3" in str(error)
    assert "| oops" in str(error)
    assert site.hosts[0].address in str(error)


@pytest.mark.slow
def test_host_without_python(site: Site) -> None:
    """It says which one is wanted."""
    host = site.hosts[0]
    tools = host.base / "tools"
    tools.mkdir()
    for name in _TOOLS.split():
        path = shutil.which(name)
        if path:
            (tools / name).symlink_to(path)
    config = host.base / "sshd_config"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("SetEnv")]
    config.write_text("\n".join([*lines, f"SetEnv HOME={host.base}/home PATH={tools}"]))
    host.stop()
    host.start()
    error = _refused(site.provider(), max_provision_attempts=1)
    assert "no Python 3." in str(error)
