"""What an image includes lies on nodes where imports, or paths from the base, find it."""

import re
import subprocess
import sys

import pytest

from skyward.engine.source.includes import include_files
from skyward.errors import ConfigError
from skyward.node.data.module_files import write_files
from tests.engine.project import load, paths, project, write

__all__ = ["project"]


@pytest.fixture
def tree(tmp_path):
    """
    Lay out a project of many shapes.
    """
    write(
        tmp_path,
        {
            "src/tool/__init__.py": "",
            "src/tool/deep/__init__.py": "",
            "src/tool/deep/leaf.py": "x = 1",
            "src/tool/words.txt": "w",
            "src/single.py": "",
            "pack/__init__.py": "",
            "pack/mod.py": "",
            "helper.py": "",
            "scripts/run.py": "",
            "data/a.csv": "1",
            "data/more/b.csv": "2",
            "src/tool/__pycache__/leaf.cpython-311.pyc": "",
            "src/.git/config": "",
            "src/.venv/lib.py": "",
            "src/env/pyvenv.cfg": "",
            "src/env/lib.py": "",
        },
    )
    return tmp_path


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (
            "./src",
            ["single.py", "tool/__init__.py", "tool/deep/__init__.py", "tool/deep/leaf.py", "tool/words.txt"],
        ),
        ("pack", ["pack/__init__.py", "pack/mod.py"]),
        ("src/tool/deep", ["tool/__init__.py", "tool/deep/__init__.py", "tool/deep/leaf.py"]),
        ("src/tool/deep/leaf.py", ["tool/__init__.py", "tool/deep/__init__.py", "tool/deep/leaf.py"]),
        ("helper.py", ["helper.py"]),
        ("scripts/run.py", ["run.py"]),
        ("data", ["data/a.csv", "data/more/b.csv"]),
        ("data/more", ["data/more/b.csv"]),
        ("data/a.csv", ["data/a.csv"]),
        ("data/**/*.csv", ["data/a.csv", "data/more/b.csv"]),
        ("pack/m*.py", ["pack/__init__.py", "pack/mod.py"]),
        ("d*", ["data/a.csv", "data/more/b.csv"]),
    ],
)
def test_layout(tree, include, expected):
    """
    What is included lies where imports, or paths from the base, find it.
    """
    assert paths(include_files((include,), (), tree)) == expected


def test_outside_of_the_base(tree):
    """
    What lies outside of the base keeps its own name.
    """
    assert paths(include_files(("../data", "../data/a.csv"), (), tree / "src")) == [
        "a.csv",
        "data/a.csv",
        "data/more/b.csv",
    ]
    assert paths(include_files((str(tree / "pack"),), (), tree / "src")) == ["pack/__init__.py", "pack/mod.py"]


def test_loaded_namespace_package(project):
    """
    A folder without `__init__.py` that is loaded as a package travels as that package.
    """
    write(project, {"space_r/leaf.py": "", "space_r/other.py": ""})
    load("space_r.leaf")
    assert paths(include_files(("space_r",), (), project)) == ["space_r/leaf.py", "space_r/other.py"]


@pytest.mark.parametrize("exclude", ["deep", "src/tool/deep", "tool/deep/*", "**/deep", "**/deep/**", "le*f.py"])
def test_excludes(tree, exclude):
    """
    Excludes name folders and files by name, by path from the base, or by path on the node.
    """
    left = paths(include_files(("src",), (exclude,), tree))
    assert "tool/deep/leaf.py" not in left
    assert "tool/words.txt" in left


def test_import_works_on_the_other_side(tree, tmp_path_factory):
    """
    What is included and written on a node can be imported there.
    """
    root = tmp_path_factory.mktemp("node")
    write_files(root, [(file.path, file.data) for file in include_files(("src", "pack"), (), tree)])
    code = "import tool.deep.leaf, single, pack.mod; print(tool.deep.leaf.x)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True, env={"PYTHONPATH": "."}
    )
    assert run.stdout == "1\n"


def test_links_in_circles_end(tree):
    """
    A link to a folder above is followed once at most.
    """
    (tree / "src/loop").symlink_to(tree / "src")
    assert len(include_files(("src",), (), tree)) == 5


@pytest.fixture
def secrets(tmp_path_factory):
    """
    Lay out what is none of the project's.
    """
    folder = tmp_path_factory.mktemp("ssh")
    write(folder, {"id_ed25519": "PRIVATE", "more/config": "Host *"})
    return folder


@pytest.mark.parametrize(
    ("link", "to", "include"),
    [
        ("data/keys", ".", "data"),
        ("data/more/keys", "more", "data"),
        ("data/notes.txt", "id_ed25519", "data"),
        ("data/notes.txt", "id_ed25519", "data/*"),
        ("data/notes.txt", "id_ed25519", "data/notes.txt"),
        ("keys", ".", "keys"),
        ("keys", ".", "k*"),
        ("keys", ".", "keys/id_ed25519"),
        ("src/tool/words.md", "id_ed25519", "src"),
        ("src/tool/deep/leaf2.py", "id_ed25519", "src/tool/deep"),
    ],
)
def test_links_that_lead_out_are_refused(tree, secrets, link, to, include):
    """
    The author of a folder must not choose which other files of this machine travel.
    """
    (tree / link).symlink_to(secrets / to)
    named = re.escape(str(tree / link))
    with pytest.raises(ConfigError, match=rf"includes would follow '{named}.* out of '{tree}.*excludes"):
        include_files((include,), (), tree)


def test_a_link_in_the_place_of_a_package_is_refused(tree, secrets):
    """
    The packages around what is included travel with it.
    """
    (tree / "src/tool/__init__.py").unlink()
    (tree / "src/tool/__init__.py").symlink_to(secrets / "id_ed25519")
    with pytest.raises(ConfigError, match=r"would follow .*/src/tool/__init__\.py' out of"):
        include_files(("src/tool/deep/leaf.py",), (), tree)


def test_a_link_that_leads_out_can_be_excluded(tree, secrets):
    """
    By its name; one to a virtual environment stays behind as all of those do.
    """
    (tree / "data/keys").symlink_to(secrets)
    write(secrets, {"venv/pyvenv.cfg": "", "venv/lib.py": ""})
    (tree / "data/env").symlink_to(secrets / "venv")
    assert paths(include_files(("data",), ("keys",), tree)) == ["data/a.csv", "data/more/b.csv"]


def test_links_within_their_folder_are_followed(tree):
    """
    Wherever in it they lead.
    """
    (tree / "data/latest").symlink_to("more")
    (tree / "data/latest.csv").symlink_to("more/b.csv")
    assert "data/latest.csv" in paths(include_files(("data",), (), tree))
    assert {"data/latest/b.csv", "data/more/b.csv"} & set(paths(include_files(("data",), (), tree)))


def test_what_is_named_by_its_own_path_travels(tree, secrets):
    """
    A user may include what he likes, also by a link of his own to it.
    """
    assert paths(include_files((str(secrets),), (), tree)) == [
        f"{secrets.name}/id_ed25519",
        f"{secrets.name}/more/config",
    ]
    (tree / "link").symlink_to(secrets)
    assert paths(include_files((str(tree / "link"),), (), tree / "src")) == ["link/id_ed25519", "link/more/config"]


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("srcc", r"includes names 'srcc'.*does not exist.*Did you mean 'src'"),
        ("nothing/*.py", r"includes names 'nothing/\*\.py'.*does not exist"),
    ],
)
def test_missing_path(tree, include, message):
    """
    A path or pattern that names nothing is refused, with the nearest name.
    """
    with pytest.raises(ConfigError, match=message):
        include_files((include,), (), tree)


def test_two_files_for_one_path(tree):
    """
    Two different files that would have one path are refused; the same file twice is not.
    """
    write(tree, {"lib/single.py": "other = 1"})
    with pytest.raises(ConfigError, match=r"two files for 'single\.py'"):
        include_files(("src", "lib"), (), tree)
    assert paths(include_files(("helper.py", "./helper.py"), (), tree)) == ["helper.py"]


def test_large_file(tree):
    """
    A file over 64 MiB is refused with a hint, unless it is excluded.
    """
    with (tree / "data/huge.bin").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(ConfigError, match=r"huge\.bin' has 64 MiB.*excludes"):
        include_files(("data",), (), tree)
    assert "data/huge.bin" not in paths(include_files(("data",), ("*.bin",), tree))
