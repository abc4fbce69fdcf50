"""Hosts that are reached through others, and what is said of these."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, CredentialsError, HostKeyError, TransportError, UnreachableError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh.jump import hops
from tests.hosts import Host, hosts
from tests.serving import get, serve
from tests.ssh.conftest import Site

pytestmark = pytest.mark.slow


@sky.function
def double(x: Any) -> Any:
    return x * 2


class Way:
    """Two jump hosts and a target."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.gate, self.inner, self.target = site.hosts

    def provider(self, jump: str | None, **changes: Any) -> sky.SSH:
        """Make the provider of the target."""
        return self.site.provider(hosts=[name(self.target)], jump=jump, **changes)


def name(host: Host) -> str:
    """Name a host as jump= does."""
    return f"{host.address}:{host.port}"


@pytest.fixture
def way() -> Iterator[Way]:
    """Run three hosts."""
    with hosts(3) as (made, key):
        yield Way(Site(made, key))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give hosts up soon that do not answer."""
    monkeypatch.setattr("skyward.providers.ssh.LOOKING", 0.3)


def _open(provider: sky.SSH, **options: Any) -> sky.Compute:
    return sky.Compute(**{"provider": provider, "console": "silent", "logging": False, "ttl": 60, **options})


def _refused(provider: sky.SSH) -> sky.SkywardError:
    with pytest.raises(sky.SkywardError) as caught, _open(provider):
        pass
    return caught.value


def _until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _known(way: Way) -> str:
    path = way.site.known_hosts
    return path.read_text() if path.exists() else ""


def _configure(text: str) -> None:
    """Write the user's own file; the tests' home is one of their own."""
    folder = Path(os.environ["HOME"]) / ".ssh"
    folder.mkdir(exist_ok=True)
    (folder / "config").write_text(text)


@pytest.fixture(autouse=True)
def _no_file_is_left() -> Iterator[None]:
    yield
    (Path(os.environ["HOME"]) / ".ssh" / "config").unlink(missing_ok=True)


@pytest.mark.parametrize("length", [1, 2])
def test_a_pool_behind_jump_hosts(way: Way, length: int) -> None:
    """Calls, streams and ports go through them; every host key is remembered, and no connection stays."""
    chain = [way.gate, way.inner][:length]
    with _open(way.provider(",".join(map(name, chain)))) as pool:
        assert double(b"x" * 1_000_000) >> pool == b"x" * 2_000_000
        with pool.forward(sky.function(serve)("http") >> pool) as pages:
            assert 100_000 == get(pages.address, 100_000)
    for host in (*chain, way.target):
        assert f"[{host.address}]:{host.port} " in _known(way)
        _until(lambda host=host: not host.connections(), f"{host.address} has connections")  # type: ignore[misc]
    assert way.gate.entered()
    assert way.target.entered()
    assert (length == 2) == bool(way.inner.entered())


def test_calls_go_on_when_the_way_is_cut(way: Way) -> None:
    """Wherever it is cut, the whole way is dialled again."""
    with _open(way.provider(f"{name(way.gate)},{name(way.inner)}")) as pool:
        results = []
        cut = iter((way.gate, way.inner, way.target))
        for number, result in enumerate(pool.map(double, range(400), stream=True)):
            results.append(result)
            if number % 100 == 50 and (host := next(cut, None)):
                host.cut()
        assert results == [2 * number for number in range(400)]


def test_clean_goes_through_them(way: Way) -> None:
    """As everything does."""
    provider = way.provider(name(way.gate))
    with _open(provider):
        pass
    assert way.target.cache.exists()
    provider.clean()
    assert not way.target.cache.exists()


def test_a_way_of_the_users_own_file(way: Way) -> None:
    """ProxyJump is followed, and so are the names, ports and keys of that file; the jump host's own jump too."""
    _configure(f"""
        Host target
            HostName {way.target.address}
            Port {way.target.port}
            IdentityFile {way.site.key}
            ProxyJump inner
        Host inner
            HostName {way.inner.address}
            Port {way.inner.port}
            IdentityFile {way.site.key}
        Host gate
            HostName {way.gate.address}
            Port {way.gate.port}
            IdentityFile {way.site.key}
        Host *
            ProxyJump gate
    """)
    with _open(sky.SSH(["target"], known_hosts=str(way.site.known_hosts))) as pool:
        assert double(4) >> pool == 8
    assert all(host.entered() for host in (way.gate, way.inner, way.target))


def test_which_hosts_are_gone_through() -> None:
    """What is written in Python comes before what the file says."""
    _configure("Host a b\n ProxyJump me@gate:2222,inner\nHost gate\n ProxyJump outer\nHost *\n ProxyJump star\n")
    listed = lambda address: [str(hop) for hop in hops(address)]
    assert ["star", "outer", "me@gate:2222", "inner"] == listed(SSHAddress(host="a"))
    assert ["star"] == listed(SSHAddress(host="c"))
    assert [] == listed(SSHAddress(host="star"))
    assert [] == listed(SSHAddress(host="a", jump="none"))
    assert ["star", "you@other"] == listed(SSHAddress(host="a", jump="you@other"))
    assert [] == listed(SSHAddress(host="a", private_key="made for the pool"))
    assert ["a:2"] == listed(SSHAddress(host="a", jump="star,a:2"))[1:]


def test_a_file_that_makes_no_sense(way: Way) -> None:
    """Is named."""
    _configure("Host *\n Port many\n")
    error = _refused(way.provider(None))
    assert isinstance(error, ConfigError)
    assert "~/.ssh/config" in str(error)


def test_a_changed_host_key_of_a_jump_host(way: Way) -> None:
    """It is refused before the target is spoken to."""
    provider = way.provider(name(way.gate))
    with _open(provider):
        pass
    way.gate.stop()
    way.gate.new_host_key()
    way.gate.start()
    entered = way.target.entered()
    error = _refused(provider)
    assert isinstance(error, HostKeyError)
    assert f"THE HOST KEY OF {way.gate.address}, port {way.gate.port} HAS CHANGED" in str(error)
    assert way.target.entered() == entered


def test_a_changed_host_key_behind_a_jump_host(way: Way) -> None:
    """The target is judged as ever."""
    provider = way.provider(name(way.gate))
    with _open(provider):
        pass
    way.target.stop()
    way.target.new_host_key()
    way.target.start()
    error = _refused(provider)
    assert isinstance(error, HostKeyError)
    assert f"THE HOST KEY OF {way.target.address}, port {way.target.port} HAS CHANGED" in str(error)
    _until(lambda: not way.gate.connections(), "a connection to the jump host stays")


def test_an_unknown_jump_host_where_only_known_ones_are_trusted(way: Way) -> None:
    """Trust holds for the whole way."""
    error = _refused(way.provider(name(way.gate), trust="known"))
    assert isinstance(error, HostKeyError)
    assert f"The host key of {way.gate.address}, port {way.gate.port}" in str(error)
    assert "" == _known(way)


def test_a_jump_host_that_does_not_let_us_in(way: Way, tmp_path: Path) -> None:
    """It is the one that is named, with the keys that were tried."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    (way.gate.base / "authorized_keys").write_text((tmp_path / "other.pub").read_text())
    error = _refused(way.provider(name(way.gate)))
    assert isinstance(error, CredentialsError)
    assert f"The jump host {name(way.gate)} refuses the login" in str(error)
    assert str(way.site.key) in str(error)
    assert way.target.address not in str(error)


def test_a_jump_host_with_a_key_of_its_own(way: Way, tmp_path: Path) -> None:
    """Its key in the user's file is tried beside the one for the target."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    (way.gate.base / "authorized_keys").write_text((tmp_path / "other.pub").read_text())
    _configure(f"Host {way.gate.address}\n IdentityFile {tmp_path / 'other'}\n")
    with _open(way.provider(name(way.gate))) as pool:
        assert double(4) >> pool == 8


@pytest.mark.usefixtures("quick")
def test_a_jump_host_that_is_down(way: Way) -> None:
    """It is the one that is named."""
    way.gate.stop()
    error = _refused(way.provider(name(way.gate)))
    assert isinstance(error, UnreachableError)
    assert f"The jump host {name(way.gate)} cannot be reached" in str(error)
    assert way.target.address not in str(error)


@pytest.mark.usefixtures("quick")
def test_a_second_jump_host_that_is_down(way: Way) -> None:
    """Both are named, and the first is not kept waiting."""
    way.inner.stop()
    error = _refused(way.provider(f"{name(way.gate)},{name(way.inner)}"))
    assert isinstance(error, UnreachableError)
    assert f"The jump host {name(way.inner)} cannot be reached from the jump host {name(way.gate)}" in str(error)
    _until(lambda: not way.gate.connections(), "a connection to the jump host stays")


@pytest.mark.usefixtures("quick")
def test_a_target_that_is_down(way: Way) -> None:
    """It is the one that is named, and from where it was tried."""
    way.target.stop()
    error = _refused(way.provider(name(way.gate)))
    assert isinstance(error, UnreachableError)
    assert f"{name(way.target)} cannot be reached from the jump host {name(way.gate)}" in str(error)


def test_a_jump_host_that_lets_nobody_through(way: Way) -> None:
    """The setting is named."""
    way.gate.configure("AllowTcpForwarding no")
    error = _refused(way.provider(name(way.gate)))
    assert isinstance(error, TransportError)
    assert f"The jump host {name(way.gate)} refuses to forward" in str(error)
    assert "AllowTcpForwarding" in str(error)


def test_a_jump_host_that_there_is_not(way: Way) -> None:
    """Its name is repeated."""
    error = _refused(way.provider("no-such-host.invalid"))
    assert isinstance(error, TransportError)
    assert "There is no host 'no-such-host.invalid'" in str(error)
