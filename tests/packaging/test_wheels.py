"""
The wheels of this repository, built and installed as a user would get them.
"""

from __future__ import annotations

import re
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.packaging.installing import FOLDERS, ROOT, run

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(300), pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def python(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Install the wheels into a fresh environment and return its interpreter.

    They are named by file: the package index knows another program by the name of `skyward`.
    """
    folder = tmp_path_factory.mktemp("fresh")
    run([sys.executable, "-m", "venv", folder / "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", *wheels], folder)
    return python


def metadata(wheel: Path) -> Message:
    """Return the metadata in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def readme_examples() -> list[str]:
    """Return the examples of the README that import Skyward and need no account."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "import skyward as sky" in block]


def test_every_distribution_gives_one_wheel(wheels: list[Path]) -> None:
    """Each folder with a project file builds into one wheel."""
    assert len(FOLDERS) == len(wheels)


def test_wheels_carry_licence_readme_and_version(wheels: list[Path]) -> None:
    """Each wheel tells its licence, with the text in it, its README, and the Python it needs."""
    for wheel in wheels:
        facts = metadata(wheel)
        with zipfile.ZipFile(wheel) as archive:
            files = archive.namelist()
        assert "MIT" == facts["License-Expression"], wheel.name
        assert ["LICENSE"] == facts.get_all("License-File"), wheel.name
        assert [name for name in files if name.endswith(".dist-info/licenses/LICENSE")], wheel.name
        assert ">=3.11" == facts["Requires-Python"], wheel.name
        assert "text/markdown" == facts["Description-Content-Type"], wheel.name
        assert str(facts.get_payload()).strip(), wheel.name


def test_wheels_of_code_are_typed_and_hold_nothing_else(wheels: list[Path]) -> None:
    """Each wheel holds its import package with `py.typed`; the meta distribution holds no code at all."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
            typed = {name.split("/")[0] for name in archive.namelist() if name.endswith("/py.typed")}
        name = wheel.name.split("-")[0]
        expected = {"skyward": set(), "skyward_core": {"skyward"}}.get(name, {name})
        assert expected == tops == typed, wheel.name


def test_core_alone_works(wheels: list[Path], tmp_path: Path) -> None:
    """`skyward-core` can be installed by itself; the meta distribution adds no code to it."""
    core = next(wheel for wheel in wheels if wheel.name.startswith("skyward_core-"))
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", core], tmp_path)
    printed = run([python, "-c", "import skyward; print(skyward.__version__)"], tmp_path)
    assert metadata(core)["Version"] == printed.strip()


def test_the_installation_is_consistent(python: Path, tmp_path: Path) -> None:
    """All requirements of ours are met, says pip."""
    assert "No broken requirements found." in run([python, "-m", "pip", "check"], tmp_path)


@pytest.mark.parametrize("code", readme_examples(), ids=lambda code: f"{len(code.splitlines())} lines")
def test_the_examples_of_the_readme_run_where_only_the_wheels_are(code: str, python: Path, tmp_path: Path) -> None:
    """What the README shows prints what the README says, in an environment without the checkout."""
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    printed = run([python, script], tmp_path)
    assert [] == [line for line in re.findall(r"# prints (.*)", code) if line not in printed]


def test_the_readme_has_examples() -> None:
    """The README shows at least one program."""
    assert readme_examples()
