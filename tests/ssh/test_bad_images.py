"""What an image asks for and cannot be had, or is broken off, is one clear error or goes on."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ProvisionError, SkywardError
from tests.hosts import Host
from tests.ssh.conftest import Site

NOBODY = "http://127.0.0.1:1/simple"


class _Empty(BaseHTTPRequestHandler):
    """An index that has no package."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def empty_index() -> Iterator[str]:
    """Serve an index that has no package."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _compute(site: Site, **options: Any) -> sky.Compute:
    given = {"console": "silent", "logging": False, "max_provision_attempts": 1, "ttl": 60, **options}
    return sky.Compute(provider=site.provider(), **given)


def _refused(site: Site, **options: Any) -> SkywardError:
    with pytest.raises(SkywardError) as caught, _compute(site, **options):
        pass
    return caught.value


def _until(condition: Callable[[], object], what: str, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _program(host: Host, name: str, body: str) -> None:
    path = host.base / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_package_that_is_not_in_the_index(site: Site, empty_index: str) -> None:
    """Its name is repeated, and what to check is said."""
    env = {"UV_DEFAULT_INDEX": empty_index, "UV_INDEX_URL": empty_index}
    error = _refused(site, image=sky.Image(pip=["no-such-package-of-skyward"], env=env))
    assert isinstance(error, ProvisionError)
    assert "no-such-package-of-skyward" in str(error)
    assert "Check the package names in Image(pip=[...])" in str(error)


@pytest.mark.slow
def test_index_that_cannot_be_reached(site: Site) -> None:
    """It is named, and how to name another."""
    env = {"UV_DEFAULT_INDEX": NOBODY, "UV_INDEX_URL": NOBODY, "UV_HTTP_RETRIES": "0"}
    error = _refused(site, image=sky.Image(pip=["six"], env=env))
    assert isinstance(error, ProvisionError)
    assert NOBODY in str(error)
    assert "index cannot be reached from there" in str(error)


@pytest.mark.slow
def test_system_packages_without_root(site: Site) -> None:
    """It says what is missing, and who may install it."""
    _program(site.hosts[0], "id", "echo 1000")
    _program(site.hosts[0], "sudo", "exit 1")
    error = _refused(site, image=sky.Image(apt=["no-such-package-of-skyward"]))
    assert isinstance(error, ProvisionError)
    assert "apt needs root" in str(error)
    assert "no-such-package-of-skyward" in str(error)


@pytest.mark.slow
def test_connection_lost_in_the_middle_of_the_bootstrap(site: Site) -> None:
    """It goes on, and each line of its output arrives once."""
    counting = "for i in $(seq 40); do echo counted $i; sleep 0.05; done"
    lines: list[str] = []

    def take(event: sky.BootstrapConsole) -> None:
        lines.append(event.line)
        if event.line.endswith(("5", "0")):
            site.hosts[0].cut()

    plugin = sky.Plugin.create("counting").with_bootstrap(lambda cluster: [counting])
    with _compute(site, plugins=[plugin]).on(sky.BootstrapConsole, take) as pool:
        assert sky.function(lambda: 1)() >> pool == 1
    assert [line for line in lines if line.startswith("counted")] == [f"counted {i}" for i in range(1, 41)]


@pytest.mark.slow
def test_host_gone_in_the_middle_of_the_bootstrap(site: Site) -> None:
    """One error in time; the host, which no client can reach, cleans up after itself."""
    host = site.hosts[0]
    plugin = sky.Plugin.create("slow").with_bootstrap(lambda cluster: ["echo going; sleep 1000"])
    pool = _compute(site, plugins=[plugin], bootstrap_timeout=6, ttl=5)
    pool.on(sky.BootstrapConsole, lambda event: host.stop() if event.line == "going" else None)
    with pytest.raises(SkywardError) as caught, pool:
        pass
    assert host.address in str(caught.value)
    _until(lambda: not host.processes(), "processes are left")


@contextlib.contextmanager
def _disk(host: Host, path: Path, options: str) -> Iterator[None]:
    """Mount a disk on a host's folder, where this machine allows it."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"{options},mode=700", "tmpfs", str(path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nobody may mount a disk here")
    try:
        yield
    finally:
        host.sweep()
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_home_that_is_read_only(site: Site) -> None:
    """The folder is named, and how to name another."""
    host = site.hosts[0]
    with _disk(host, host.base / "home", "ro"):
        error = str(_refused(site))
    assert f"{host.cache} cannot be written to" in error
    assert "SKYWARD_CACHE" in error


def test_disk_that_is_too_small(site: Site) -> None:
    """It says so before anything is written."""
    with _disk(site.hosts[0], site.hosts[0].cache, "size=20m"):
        assert "MB are needed" in str(_refused(site))


@pytest.mark.slow
def test_disk_that_is_full_in_the_middle(site: Site) -> None:
    """The step that fails is shown, and what to do."""
    filling = sky.Plugin.create("filling").with_bootstrap(
        lambda cluster: ["cat /dev/zero >${SKYWARD_CACHE:-$HOME/.cache/skyward}/filling"]
    )
    with _disk(site.hosts[0], site.hosts[0].cache, "size=120m"):
        error = _refused(site, plugins=[filling])
    assert "No space left on device" in str(error)
    assert "Free some space there" in str(error)


@pytest.mark.slow
def test_disk_that_is_full_when_modules_arrive(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node says why it gives up; if it did so before the modules came, the one that was to replace it does."""
    (tmp_path / "large_of_test.py").write_text(f"TEXT = {'x' * 100_000!r}\ndef size():\n    return len(TEXT)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def work(pool: sky.Compute) -> None:
        sky.function(_fill)(0) >> pool
        import large_of_test  # type: ignore[import-not-found]

        sky.function(large_of_test.size)() >> pool

    with (
        _disk(site.hosts[0], site.hosts[0].cache, "size=120m"),
        _compute(site, retry_on_interruption=0) as pool,
        pytest.raises(SkywardError) as caught,
    ):
        work(pool)
    assert re.search(r"No space left on device|\b\d MB left at", str(caught.value)), caught.value


@pytest.mark.slow
def test_disk_that_stays_full_while_a_call_runs(site: Site) -> None:
    """The watchdog hears the client all the same, so that the call ends well long after `ttl`."""
    with _disk(site.hosts[0], site.hosts[0].cache, "size=120m"), _compute(site, ttl=5, retry_on_interruption=0) as pool:
        assert sky.function(_fill)(15) >> pool > 1 << 20


def _fill(seconds: float) -> int:
    """Take all room there is, and for some seconds whatever becomes free."""
    written, until = 0, time.monotonic() + seconds
    with Path(os.environ["HOME"], ".cache", "skyward", "filling").open("ab", 0) as file:
        for size in (1 << 16, 1):
            with contextlib.suppress(OSError):
                while True:
                    written += file.write(bytes(size))
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                written += file.write(bytes(1 << 12))
    return written
