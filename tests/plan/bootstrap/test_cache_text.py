"""The cache on a machine, run by real shells: its entries, the check of its permissions, and its removal."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from skyward.plan.bootstrap.cache_text import ENTRIES, clean, make_entries, unsafe
from tests.strangers import give_away

SHELLS = [words for words in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(words[0])] or [["sh"]]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    """Give the command of a shell that machines have."""
    words: list[str] = request.param
    return words


def ran(shell: list[str], script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script, as it comes over a connection."""
    command = [*shell, "-s", "--", *words] if shell[0] != "busybox" else [*shell, "-s", *words]
    variables = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(command, input=script, env=variables, capture_output=True, text=True, check=False)


def told(shell: list[str], cache: Path) -> list[str]:
    """Return what is said of a cache."""
    done = ran(shell, f'{unsafe()}\nunsafe "$1"', str(cache))
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.splitlines()


def make(shell: list[str], cache: Path) -> None:
    """Make a cache."""
    done = ran(shell, f'set -eu\n{make_entries()}\numask 077\nmake_entries "$1"', str(cache))
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_what_is_made_is_safe_and_listed(shell: list[str], tmp_path: Path) -> None:
    """A second time nothing is changed; what was there before is not listed."""
    cache = tmp_path / "a" / "cache"
    make(shell, cache)
    assert [] == told(shell, cache)
    assert {".skyward", *ENTRIES} == {path.name for path in cache.iterdir()}
    assert [".", *ENTRIES] == (cache / ".skyward").read_text().splitlines()
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (tmp_path / "a", cache, *cache.glob("[a-z]*"))}
    data = tmp_path / "data"
    (data / "tools").mkdir(parents=True)
    make(shell, data)
    make(shell, data)
    (data / "nodes").rmdir()
    make(shell, data)
    assert [name for name in ENTRIES if name != "tools"] == (data / ".skyward").read_text().splitlines()


@pytest.mark.parametrize(
    "planted", [".", "tools", "tools/bin", "tools/bin/uv", "runtime/00", "environments/py3", "nodes"]
)
def test_what_another_user_could_change_is_named(shell: list[str], tmp_path: Path, planted: str) -> None:
    """Wherever we enter, import from or run something."""
    cache = tmp_path / "cache"
    make(shell, cache)
    (cache / planted).mkdir(parents=True, exist_ok=True)
    give_away(cache / planted)
    line = told(shell, cache)[0]
    assert line.startswith(str(cache))
    assert line.endswith(("belongs to user 54321", "can be written by other users"))


@pytest.mark.parametrize(("mode", "safe"), [(0o1777, True), (0o777, False), (0o755, True)])
def test_what_is_above_it_counts_too(shell: list[str], tmp_path: Path, mode: int, safe: bool) -> None:
    """As far as others could put another cache in its place."""
    above = tmp_path / "above"
    make(shell, above / "cache")
    above.chmod(mode)
    assert safe == (not told(shell, above / "cache"))
    assert safe == (not told(shell, above / "missing" / "cache"))


@root_only
def test_a_link_counts_as_its_owners(shell: list[str], tmp_path: Path) -> None:
    """One of one's own is followed; what it leads to is looked at, too."""
    make(shell, tmp_path / "disk" / "cache")
    link = tmp_path / "link"
    link.symlink_to("disk")
    assert [] == told(shell, link / "cache")
    (tmp_path / "disk").chmod(0o777)
    assert told(shell, link / "cache")[0].endswith("disk can be written by other users")
    (tmp_path / "disk").chmod(0o700)
    give_away(link)
    assert [f"{link} -> disk belongs to user 54321"] == told(shell, link / "cache")


def test_no_link_lies_in_it(shell: list[str], tmp_path: Path) -> None:
    """What is removed and entered there is there."""
    make(shell, tmp_path / "cache")
    (tmp_path / "cache" / "python").rename(tmp_path / "elsewhere")
    (tmp_path / "cache" / "python").symlink_to(tmp_path / "elsewhere")
    assert [True] == [line.endswith("is a link") for line in told(shell, tmp_path / "cache")]


def test_only_what_we_made_is_removed(shell: list[str], tmp_path: Path) -> None:
    """In a directory that the user named, whatever else is in there and whatever it is called."""
    data = tmp_path / "data"
    (data / "tools").mkdir(parents=True)
    (data / "tools" / "mine").touch()
    (data / "thesis.txt").touch()
    make(shell, data)
    (data / "environments" / "py3").mkdir()
    (data / "nodes" / "a1-0").mkdir()
    (data / "nodes" / "a1-0" / "lease").touch()
    (data / "nodes" / "mine").mkdir()
    done = ran(shell, clean(), SKYWARD_CACHE=str(data))
    assert (0, "kept=nodes\nkept=thesis.txt\nkept=tools\n", "") == (done.returncode, done.stdout, done.stderr)
    assert (data / "tools" / "mine").exists()
    assert ["nodes/mine", "tools/mine"] == sorted(str(path.relative_to(data)) for path in data.glob("*/*"))


@pytest.mark.parametrize("variable", ["SKYWARD_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_nothing_is_left_of_what_we_made(shell: list[str], tmp_path: Path, variable: str) -> None:
    """Not even the directory; where it is by default, what older versions made was not listed."""
    root = {"SKYWARD_CACHE": tmp_path / "own", "XDG_CACHE_HOME": tmp_path, "HOME": tmp_path}[variable]
    cache = {"SKYWARD_CACHE": root, "XDG_CACHE_HOME": root / "skyward", "HOME": root / ".cache" / "skyward"}[variable]
    make(shell, cache)
    if variable != "SKYWARD_CACHE":
        (cache / ".skyward").unlink()
    done = ran(shell, clean(), **{variable: str(root)})
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    assert not cache.exists()
    assert 0 == ran(shell, clean(), **{variable: str(root)}).returncode


def test_the_record_of_how_gpus_were_cut_stays(shell: list[str], tmp_path: Path) -> None:
    """Until they are put together again."""
    make(shell, tmp_path / "skyward")
    record = tmp_path / "skyward" / "mig.json"
    record.write_text('[{"gpu": "GPU-1"}]')
    assert "kept=mig.json\n" == ran(shell, clean(), XDG_CACHE_HOME=str(tmp_path)).stdout
    record.write_text("[]")
    assert "" == ran(shell, clean(), XDG_CACHE_HOME=str(tmp_path)).stdout
    assert not record.exists()


def test_a_cache_that_others_could_change_is_not_removed(shell: list[str], tmp_path: Path) -> None:
    """It may be full of links by now."""
    cache = tmp_path / "skyward"
    make(shell, cache)
    give_away(cache)
    done = ran(shell, clean(), XDG_CACHE_HOME=str(tmp_path))
    assert 1 == done.returncode
    assert done.stderr.startswith(f"nothing was removed, because {cache} ")
    assert (cache / "runtime").is_dir()
