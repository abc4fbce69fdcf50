"""Environments are made once, under the hash of what is in them; what makes one may be any command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skyward.engine.source import environment
from skyward.engine.source.environment import cache_directory, cache_entry, locked, prepare, runtime_directory
from skyward.errors import ConfigError, ProvisionError
from skyward.plan.bootstrap.environment_commands import Step
from tests.strangers import give_away


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of one's own."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path / "cache"))


def _step(phase: str, code: str) -> Step:
    """Run some Python, with the environment's path as its argument."""
    return Step(phase=phase, argv=(sys.executable, "-c", code, "{environment}"))


MAKE = _step("venv", "import os, sys; os.makedirs(sys.argv[1]); open(sys.argv[1] + '/made', 'a').write('x')")


def _prepared(*steps: Step, key: str = "k", timeout: float = 30.0) -> tuple[Path, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    python = prepare(key, steps, timeout=timeout, tell=lambda *one: told.append(one))
    return python, told


def test_it_is_made_once() -> None:
    """The next caller hears of no phase."""
    python, told = _prepared(MAKE)
    assert [("venv", "started"), ("venv", "completed")] == told
    assert cache_directory() / "environments" / "k" / "bin" / "python" == python
    assert (python, []) == _prepared(MAKE)
    assert "x" == (python.parent.parent / "made").read_text()


def test_another_hash_is_another_environment() -> None:
    """Both stay."""
    one, _ = _prepared(MAKE)
    other, told = _prepared(MAKE, key="other")
    assert one != other
    assert told


def test_what_was_made_by_half_is_made_anew() -> None:
    """Nothing of the attempt before is left."""
    with pytest.raises(ProvisionError):
        _prepared(MAKE, _step("deps", "raise SystemExit(3)"))
    python, told = _prepared(MAKE)
    assert "x" == (python.parent.parent / "made").read_text()
    assert ("venv", "completed") in told


def test_a_phase_that_fails_is_told_with_command_and_last_lines() -> None:
    """Fifteen at most."""
    code = "[print('line', n) for n in range(20)]; raise SystemExit(3)"
    with pytest.raises(ProvisionError, match=r"Phase 'deps' failed with code 3: .*raise SystemExit") as caught:
        _prepared(_step("deps", code))
    assert ("| line 5\n" in str(caught.value), "| line 4\n" in str(caught.value)) == (True, False)


def test_a_phase_that_takes_too_long_is_ended() -> None:
    """The error names it, and the option."""
    with pytest.raises(ProvisionError, match=r"longer than 0\.2 s in phase 'deps'. Raise bootstrap_timeout"):
        _prepared(_step("deps", "import time; time.sleep(60)"), timeout=0.2)


def test_a_command_that_is_not_there_is_named() -> None:
    """As far as that is its phase's fault."""
    with pytest.raises(ProvisionError, match="Phase 'apt' could not run /no/such/program"):
        _prepared(Step(phase="apt", argv=("/no/such/program",)))


def test_commands_find_the_environment() -> None:
    """First on the PATH, and as VIRTUAL_ENV; an index of pip's is uv's too."""
    told = "import os; print(os.environ['PATH'].split(':')[0], os.environ['VIRTUAL_ENV']); raise SystemExit(1)"
    with pytest.raises(ProvisionError) as caught:
        _prepared(_step("deps", told))
    made = cache_directory() / "environments" / "k"
    assert f"{made}/bin {made}" in str(caught.value)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, or beneath the user's, or in the home."""
    monkeypatch.delenv("SKYWARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert Path("/caches/skyward") == cache_directory()
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path.home() / ".cache" / "skyward" == cache_directory()
    monkeypatch.setenv("SKYWARD_CACHE", "~/own")
    assert Path.home() / "own" == cache_directory()


def test_the_runtime_is_what_the_client_runs() -> None:
    """Each package that our side of a worker needs, without compiled files; made once."""
    directory = runtime_directory()
    assert {*environment.RUNTIME} <= {path.name for path in directory.iterdir()}
    assert [] == list(directory.rglob("__pycache__"))
    ours = directory / "skyward" / "engine" / "source" / "environment.py"
    assert Path(environment.__file__).read_bytes() == ours.read_bytes()
    made = ours.stat().st_mtime_ns
    assert directory == runtime_directory()
    assert made == ours.stat().st_mtime_ns


def test_a_planted_uv_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that was replaced, or lies where others could replace it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    # The tests' own interpreter has a uv beside it.
    monkeypatch.setattr(environment.sysconfig, "get_path", lambda name: str(tmp_path))
    uv = cache_entry("tools") / "bin" / "uv"
    uv.parent.mkdir(0o700)
    uv.touch(0o755)
    assert str(uv) == environment.find_uv()
    give_away(uv)
    with pytest.raises(ConfigError, match=rf"{uv} is not used, because .* SKYWARD_CACHE may name another"):
        environment.find_uv()


@pytest.mark.parametrize("planted", [".", "environments", "environments/k"])
def test_a_planted_environment_is_not_entered(planted: str) -> None:
    """A user that can change it, or the cache around it, could run code on every node."""
    _prepared(MAKE)
    give_away(cache_directory() / planted)
    with pytest.raises(ConfigError, match=r"is not used, because .* SKYWARD_CACHE may name another"):
        _prepared(MAKE)


def test_what_is_made_is_the_users_alone() -> None:
    """Whatever the umask, and whatever a step writes."""
    before = os.umask(0)
    try:
        python, _ = _prepared(MAKE)
        runtime = runtime_directory()
    finally:
        os.umask(before)
    made = [*cache_directory().rglob("*")]
    assert [] == [path for path in made if path.stat().st_mode & 0o022 and runtime not in path.parents]
    assert 0o700 == python.parent.parent.stat().st_mode & 0o777
    assert 0o700 == runtime.stat().st_mode & 0o777


def test_a_lock_is_no_way_to_empty_a_file(tmp_path: Path) -> None:
    """A link in its place is not followed."""
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "lock").symlink_to("victim")
    with pytest.raises(OSError, match="symbolic"), locked(tmp_path / "lock"):
        pass
    assert "mine" == (tmp_path / "victim").read_text()


def test_passwords_of_indexes_stay_hidden(tmp_path: Path) -> None:
    """They are in no command line, which all users of the machine can read, and in no error."""
    told = "import os, sys; print(open('/proc/self/cmdline').read(), os.environ['UV_INDEX'], sys.stdin.read())"
    url = "https://me:p@ss@x.example/simple"
    argv = (sys.executable, "-c", f"{told}; raise SystemExit(3)")
    with pytest.raises(ProvisionError, match="failed with code 3: UV_INDEX=https://") as caught:
        _prepared(Step("deps", argv, (("UV_INDEX", url),), f"own @ {url}\n"))
    assert 3 == str(caught.value).count("https://***@x.example/simple")
    assert "ss@" not in str(caught.value)
