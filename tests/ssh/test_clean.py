"""`sky clean` leaves hosts as they were before Skyward came."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import skyward as sky
from tests.hosts import Host, hosts
from tests.ssh.conftest import Site

SKY = Path(sys.executable).with_name("sky")


def _fill(host: Host) -> None:
    (host.cache / "runtime" / "some").mkdir(parents=True)


def _clean(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    options = ["--key", str(site.key), "--known-hosts", str(site.known_hosts)]
    done = subprocess.run(
        [str(SKY), "clean", *options, *words], capture_output=True, text=True, timeout=50, check=False
    )
    # Beside other tests a host may take longer than the second after which this is said.
    done.stderr = "".join(line for line in done.stderr.splitlines(True) if "has not answered yet" not in line)
    return done


def _names(site: Site) -> list[str]:
    return [f"{host.address}:{host.port}" for host in site.hosts]


@pytest.mark.slow
def test_the_cache_is_gone(two: Site) -> None:
    """On every host, straight and through another."""
    for host in two.hosts:
        _fill(host)
    done = _clean(two, *_names(two))
    assert (0, "") == (done.returncode, done.stderr)
    assert f"Nothing of Skyward is left in the cache of {', '.join(_names(two))}.\n" == done.stdout
    assert [False, False] == [host.cache.exists() for host in two.hosts]
    _fill(two.hosts[1])
    gate, target = two.hosts
    done = _clean(two, "--jump", _names(two)[0], "--port", str(target.port), target.address)
    assert (0, "") == (done.returncode, done.stderr)
    assert not target.cache.exists()
    assert gate.entered() == 2


@pytest.mark.slow
def test_a_host_that_fails_keeps_no_other_from_it(two: Site) -> None:
    """It is named, with the reason."""
    bad, good = two.hosts
    (bad.base / "authorized_keys").write_text("")
    _fill(good)
    done = _clean(two, *_names(two))
    assert (1, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith(f"sky: {_names(two)[0]} refuses the login")
    assert 1 == done.stderr.count("\n")
    assert not good.cache.exists()


@pytest.mark.slow
def test_what_the_user_has_in_the_cache_stays() -> None:
    """`SKYWARD_CACHE` may name a directory with more in it; the rest is listed to the user."""
    base = Path(tempfile.mkdtemp(prefix="data-"))
    (base / "thesis.txt").write_text("years")
    try:
        with hosts(1, env={"SKYWARD_CACHE": str(base)}) as (made, key):
            site = Site(made, key)
            with sky.Compute(provider=site.provider(), console="silent", logging=False):
                assert (base / "runtime").is_dir()
            done = _clean(site, *_names(site))
        assert (0, "") == (done.returncode, done.stderr)
        assert done.stdout.endswith(f"{_names(site)[0]}: what Skyward did not make stays there: thesis.txt\n")
        assert ["thesis.txt"] == [path.name for path in base.iterdir()]
    finally:
        shutil.rmtree(base)


def test_several_hosts_that_fail(two: Site) -> None:
    """All are named."""
    for host in two.hosts:
        (host.base / "authorized_keys").write_text("")
    with pytest.raises(sky.NodeError, match="2 of 2 hosts could not be cleaned:") as caught:
        two.provider().clean()
    assert [] == [name for name in _names(two) if f"\n  {name}: {name} refuses the login" not in str(caught.value)]


def test_a_cache_that_cannot_be_emptied(site: Site) -> None:
    """The host's own words are shown."""
    host = site.hosts[0]
    _fill(host)
    tool = host.base / "bin" / "rm"
    tool.write_text("#!/bin/sh\necho 'rm: it is in use' >&2; exit 1\n")
    tool.chmod(0o755)
    with pytest.raises(sky.NodeError, match=rf"The cache on {_names(site)[0]} could not be emptied: rm: it is in use"):
        site.provider().clean()
