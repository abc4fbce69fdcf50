"""Another program has the name `skyward` on the public index; it is never taken for the meta distribution."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import skyward
from tests.packaging.installing import ROOT, run

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(300), pytest.mark.xdist_group("packaging")]

META = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
OURS = {"skyward": META, "skyward-core": skyward.__version__, "skyward-aws": skyward.__version__}

SHOW = """
import json, skyward
from importlib.metadata import distributions
skyward.AWS, skyward.function
print(json.dumps({each.name: each.version for each in distributions() if each.name.startswith("skyward")}))
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a wheel of another program with this name, which has an extra of the same name, too."""
    wheel = tmp_path_factory.mktemp("other") / "skyward-0.12.1-py3-none-any.whl"
    facts = "skyward-0.12.1.dist-info"
    files = {
        "skyward/__init__.py": "AWS = 'another program'\n",
        f"{facts}/METADATA": "Metadata-Version: 2.1\nName: skyward\nVersion: 0.12.1\nProvides-Extra: aws\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{facts}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{facts}/RECORD")))
    return wheel


@pytest.fixture(scope="module")
def shelf(wheels: list[Path], other: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the other program beside our wheels."""
    folder = tmp_path_factory.mktemp("shelf")
    for wheel in (*wheels, other):
        shutil.copy(wheel, folder)
    return folder


def fresh(folder: Path) -> Path:
    """Make an environment, and return its interpreter."""
    run([sys.executable, "-m", "venv", folder / "venv"], folder)
    return folder / "venv" / "bin" / "python"


def documented() -> str:
    """Return what the README says to ask for, without its other extras."""
    found = re.search(r'--find-links dist "skyward\[aws[a-z,]*\]([^"]+)"', (ROOT / "README.md").read_text("utf-8"))
    assert found
    return f"skyward[aws]{found[1]}"


def test_pip_chooses_ours_and_the_core_of_it(shelf: Path, tmp_path: Path) -> None:
    """Also when the name is asked for without a bound."""
    python = fresh(tmp_path)
    run([python, "-m", "pip", "install", "--quiet", "--find-links", shelf, "skyward[aws]"], tmp_path)
    assert OURS == json.loads(run([python, "-c", SHOW], tmp_path))


def test_uv_chooses_ours_and_the_core_of_it(shelf: Path, tmp_path: Path) -> None:
    """As pip does."""
    python = fresh(tmp_path)
    command = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--python", python, "--find-links", shelf]
    printed = run([*command, "skyward[aws]"], tmp_path)
    assert OURS == dict(re.findall(r"^ *\+ (skyward[a-z-]*)==(\S+)", printed, re.MULTILINE))


def test_the_other_program_never_meets_what_is_documented(shelf: Path, other: Path, tmp_path: Path) -> None:
    """Neither where it is all there is, nor where it is installed; without it, ours is installed."""
    python, install = fresh(tmp_path), ["-m", "pip", "install", "--quiet"]
    run([python, *install, "--no-index", other], tmp_path)
    alone = [python, *install, "--no-index", "--find-links", other.parent, documented()]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 0 != done.returncode
    assert "No matching distribution found for skyward" in done.stderr
    run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "skyward"], tmp_path)
    run([python, *install, "--find-links", shelf, documented()], tmp_path)
    assert OURS == json.loads(run([python, "-c", SHOW], tmp_path))
