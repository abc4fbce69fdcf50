"""`sky config` shows, checks and describes configuration files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

Typed = Callable[..., tuple[int, str, str]]

PROJECT = """[providers.lab]
type = "SSH"
hosts = ["gpu-box"]
key = "${LAB_KEY:-~/.ssh/secret-default}"

[pools.train]
extends = "base"
provider = "lab"
env = { HF_TOKEN = "hunter2" }
image = { pip_extra_index_url = "https://me:hunter2@example.org/simple" }
"""
OWN = "[pools.base]\nnodes = 2\n"


@pytest.fixture
def sky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Return a function that types something below a project's file, over a user's own settings."""
    own = tmp_path / "settings" / "skyward"
    for folder in (own, tmp_path / "project" / "inner"):
        folder.mkdir(parents=True)
    (own / "skyward.toml").write_text(OWN)
    (tmp_path / "project" / "skyward.toml").write_text(PROJECT)
    env = {**os.environ, "XDG_CONFIG_HOME": str(own.parent)}

    def typed(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("sky")), "config", *words],
            cwd=tmp_path / "project" / "inner",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return typed


def test_values_are_shown_with_their_files(sky: Typed, tmp_path: Path) -> None:
    """Merged, without anything that may be secret."""
    project, own = tmp_path / "project" / "skyward.toml", tmp_path / "settings" / "skyward" / "skyward.toml"
    code, shown, complaint = sky("show")
    assert (0, "") == (code, complaint)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert f'key = "${{LAB_KEY:-***}}" # {project}:4' in lines
    assert f'provider = "lab" # {project}:8' in lines
    assert f'env = {{ HF_TOKEN = "***" }} # {project}:9' in lines
    assert f"nodes = 2 # {own}:2" in lines
    code, answer, _ = sky("show", "--json")
    whole = json.loads(answer)
    assert [str(project), str(own)] == whole["files"]
    assert {"file": str(own), "line": 2, "column": 1} == whole["sources"]["pools.train.nodes"]
    assert (2, ["gpu-box"]) == (
        whole["config"]["pools"]["train"]["nodes"],
        whole["config"]["providers"]["lab"]["hosts"],
    )
    assert not any(secret in shown + answer for secret in ("hunter2", "secret-default"))


def test_every_error_is_listed_with_its_place(sky: Typed, tmp_path: Path) -> None:
    """On standard output, as other checkers do, and with exit code 1."""
    file = tmp_path / "project" / "skyward.toml"
    code, answer, complaint = sky("validate")
    assert (0, "", True) == (code, complaint, answer.endswith("skyward.toml: no errors.\n"))
    other = tmp_path / "other.toml"
    other.write_text(
        "[pools.train]\nnodes = 0\nregoin = 'eu'\nprovider = { type = 'Locl' }\nenv = { A = '${NOT_SET_HERE}' }\n"
        "[pools.both]\nconcurrency = 2\nworker = { per_node = 2 }\n[images.base]\npipp = []\n"
    )
    code, answer, _ = sky("validate", str(other))
    starts = ["2:1: pools.train.nodes: nodes must be", "3:1: pools.train.regoin: a pool has no setting"]
    starts += ["4:14: pools.train.provider.type: There is no provider", "5:9: pools.train.env.A: The environment"]
    starts += ["6:1: pools.both: concurrency= and worker=", "10:1: images.base.pipp: image has no setting"]
    assert 1 == code
    assert [True] * 6 == [
        line.startswith(f"{other}:{start}") for line, start in zip(answer.splitlines(), starts, strict=True)
    ]
    assert 'Did you mean "Local"?' in answer
    code, answer, _ = sky("validate", "--json", str(other))
    assert (1, 6, 2) == (code, len(json.loads(answer)["errors"]), json.loads(answer)["errors"][0]["line"])
    file.write_text("[pools.train\n")
    assert (1, f"{file}:1:13: ") == (sky("validate")[0], sky("validate")[1][: len(f"{file}:1:13: ")])


def test_the_schema_is_one(sky: Typed) -> None:
    """An editor can be given what is printed."""
    code, answer, _ = sky("schema")
    assert 0 == code
    Draft7Validator.check_schema(json.loads(answer))


def test_what_is_not_there_is_said(sky: Typed, tmp_path: Path) -> None:
    """A file, or a word."""
    code, answer, complaint = sky("validate", "none.toml")
    assert (1, True, "") == (code, "none.toml cannot be read: No such file" in answer, complaint)
    code, _, complaint = sky("shwo")
    assert (2, True) == (code, "invalid choice: 'shwo'" in complaint.lower())
