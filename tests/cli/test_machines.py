"""Machines are listed and ended by the program `sky`, from what the cloud tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

from skyward.testing import Rehearsal
from skyward.testing.books import Books, Machine
from tests.testing import conftest

pytestmark = pytest.mark.slow

SKY = Path(sys.executable).with_name("sky")
books = conftest.books

THIRD = """
from skyward.hookspecs import hookimpl
from skyward.testing import Rehearsal

@hookimpl
def skyward_providers():
    return {"Play": Rehearsal}
"""

CLIENT = """
import sys
import skyward as sky

with sky.Compute(name=sys.argv[1], options=sky.Options(console="silent", logging=False)):
    print("ready", flush=True)
    sys.stdin.readline()
"""


HERE = ("--provider", "rehearsal")
"""No other cloud is asked: the environment of the tests has them all, and credentials for none."""


class Desk:
    """A folder with a `skyward.toml`, in which programs are run."""

    def __init__(self, folder: Path, books: str) -> None:
        self.folder = folder
        self.cloud = Rehearsal(directory=books)
        play = f'provider = {{ type = "Play", directory = "{books}" }}\n'
        (folder / "skyward.toml").write_text(f"[pools.train]\n{play}nodes = 2\n[pools.sweep]\n{play}")
        (folder / "third_party_of_play.py").write_text(THIRD)
        facts = folder / "third_party_of_play-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-of-play\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text("[skyward]\nplay = third_party_of_play\n")
        self.env = {**os.environ, "PYTHONPATH": str(folder), "SKYWARD_STATE": str(folder / "state")}

    def sky(self, *words: str) -> tuple[int, str, str]:
        """Type something, and give code, answer and complaint."""
        done = subprocess.run(
            [str(SKY), *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=80,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def forget(self, pool: str) -> None:
        """Open a pool in a program that is killed before it can leave it."""
        with subprocess.Popen(
            [sys.executable, "-c", CLIENT, pool],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            client.send_signal(signal.SIGKILL)

    def give_away(self, *owners: str) -> None:
        """Give the first machines another owner."""
        for machine, owner in zip(self.cloud.machines(), owners, strict=False):
            Books(self.cloud.directory).change(machine.id, partial(_owned_by, owner))

    def expire(self) -> None:
        """Have all clients be gone for long."""
        for machine in self.cloud.machines():
            self.cloud._cloud.renew([machine.id], time.time() - 900)


def _owned_by(owner: str, machine: Machine) -> Machine:
    return evolve(machine, tags={**machine.tags, "skyward:owner": owner})


@pytest.fixture
def desk(tmp_path: Path, books: str) -> Iterator[Desk]:
    return Desk(tmp_path, books)


@pytest.mark.parametrize("words", [("ls", "nightly"), ("down", "nightly", "--yes")])
def test_a_pool_that_has_nothing_is_not_there(desk: Desk, words: tuple[str, ...]) -> None:
    """What is asked for by its name and not found is no success, for a script that asks."""
    complaint = "sky: 'nightly': no machine at rehearsal. Type: sky ls\n"
    assert desk.sky(*words, *HERE) == (1, "", complaint)


def test_what_a_killed_client_leaves_is_listed_and_ended(desk: Desk) -> None:
    """By the name of its pool, whichever client asks."""
    code, answer, _ = desk.sky("ls", *HERE)
    assert (code, answer) == (0, "rehearsal: no machine found.\n")
    desk.forget("train")
    desk.forget("sweep")
    code, answer, complaint = desk.sky("ls", "train", *HERE)
    assert (code, complaint) == (0, "")
    assert [line.split()[:2] for line in answer.splitlines()] == [["POOL", "NODE"], ["train", "0"], ["train", "1"]]
    code, answer, complaint = desk.sky("down", "train", "--yes")
    assert (code, complaint) == (0, "")
    assert [machine.tags.pool_name for machine in desk.cloud.machines() if machine.tags] == ["sweep"]
    assert desk.sky("down", "--all", "--yes")[0] == 0
    assert desk.cloud.machines() == []


def test_machines_are_listed_for_programs(desk: Desk) -> None:
    """As one JSON value, with what could not be asked, and the same exit code."""
    desk.forget("sweep")
    code, answer, complaint = desk.sky("ls", "--json", *HERE)
    assert (0, "") == (code, complaint)
    found = json.loads(answer)
    assert (["rehearsal"], {}) == (found["asked"], found["failures"])
    [machine] = found["machines"]
    assert ("sweep", 0, "rehearsal") == tuple(machine[key] for key in ("pool", "node", "provider"))
    assert machine["hourly_rate"] > 0
    code, answer, complaint = desk.sky("ls", "nightly", "--json", *HERE)
    assert (1, []) == (code, json.loads(answer)["machines"])
    assert desk.sky("down", "--all", "--yes")[0] == 0


def test_a_cloud_without_credentials_is_named(desk: Desk) -> None:
    """Nothing runs there that is known of, and that is not the same as nothing."""
    without = {name: value for name, value in desk.env.items() if not name.startswith(("AWS_", "RUNPOD_"))}
    desk.env = {**without, "HOME": str(desk.folder)}
    code, answer, complaint = desk.sky("ls", *HERE, "--provider", "runpod")
    assert (1, "rehearsal: no machine found.\n") == (code, answer)
    assert complaint.startswith("sky: runpod cannot be asked for lack of credentials, and may have more.")
    assert "sky providers check runpod" in complaint
    code, answer, _ = desk.sky("ls", "--json", *HERE, "--provider", "runpod")
    assert (1, ["runpod"]) == (code, list(json.loads(answer)["failures"]))


def test_a_provider_that_is_none_is_refused(desk: Desk) -> None:
    """With the nearest."""
    assert (2, "", "sky: No provider is called 'rehearsl' here. Did you mean 'rehearsal'?\n") == desk.sky(
        "ls", "--provider", "rehearsl"
    )


def test_a_pool_whose_name_is_mistyped(desk: Desk) -> None:
    """The nearest that there is is offered."""
    desk.forget("sweep")
    code, _, complaint = desk.sky("ls", "sweeep", *HERE)
    assert (1, "sky: 'sweeep': no machine at rehearsal. Did you mean 'sweep'?\n") == (code, complaint)
    assert desk.sky("down", "--all", "--yes")[0] == 0


LIVING = """
import time
import skyward as sky

with sky.Compute(name="train", options=sky.Options(console="silent", logging=False)) as pool:
    print("ready", flush=True)
    for seconds in (300, 0):
        try:
            sky.function(time.sleep)(seconds) >> pool
        except sky.PoolEndedError as error:
            print(seconds, error, flush=True)
"""


def test_a_pool_whose_program_lives_stays_ended(desk: Desk) -> None:
    """Nothing is rented in the place of its machines, and its program gets an error that names the command."""
    with subprocess.Popen(
        [sys.executable, "-c", LIVING], cwd=desk.folder, env=desk.env, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert "ready\n" == client.stdout.readline()
        assert 0 == desk.sky("down", "train", "--yes")[0]
        errors = client.communicate(timeout=40)[0].splitlines()
        assert 0 == client.returncode
    assert [
        f"{seconds} The pool 'train' was ended from outside, by: sky down train --yes (process" for seconds in (300, 0)
    ] == [error.rpartition(" (process ")[0] + " (process" for error in errors]
    assert ([], 2) == (desk.cloud.machines(), len(Books(desk.cloud.directory).machines()))


def test_a_pool_whose_program_lives_on_another_computer_stays_ended(desk: Desk) -> None:
    """Its program reads the tags of its machines, and ends them itself."""
    there = {**desk.env, "SKYWARD_STATE": str(desk.folder / "elsewhere")}
    with subprocess.Popen(
        [sys.executable, "-c", LIVING], cwd=desk.folder, env=there, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert "ready\n" == client.stdout.readline()
        desk.give_away("eve@laptop", "eve@laptop")
        assert 0 == desk.sky("down", "train", "--all-owners", "--yes")[0]
        errors = client.communicate(timeout=40)[0].splitlines()
        assert 0 == client.returncode
    by = "The pool 'train' was ended from outside, by: sky down, on another computer"
    assert [f"300 {by}", f"0 {by}"] == [error[: len(by) + error.index(" ") + 1] for error in errors]
    assert ([], 2) == (desk.cloud.machines(), len(Books(desk.cloud.directory).machines()))


def test_other_peoples_machines_are_left_alone(desk: Desk) -> None:
    """Except with `--all-owners`: pools without a name of their own share the default name."""
    desk.forget("train")
    desk.give_away("eve@laptop")
    code, answer, complaint = desk.sky("down", "train", "--yes")
    assert (0, 1) == (code, answer.count("rehearsal"))
    assert "1 machine is meant too and left alone: of eve@laptop. To end all: write --all-owners" in complaint
    assert ["eve@laptop"] == [machine.tags.owner for machine in desk.cloud.machines() if machine.tags]
    for words in (["train"], ["--all"], ["--expired", "train"]):
        desk.expire()
        code, answer, _ = desk.sky("down", *words, "--yes")
        assert (1, "") == (code, answer)
    assert 1 == len(desk.cloud.machines())
    assert 0 == desk.sky("down", "--all", "--all-owners", "--yes")[0]
    assert [] == desk.cloud.machines()


def test_only_machines_whose_client_is_gone_are_expired(desk: Desk) -> None:
    """As their tags tell."""
    desk.forget("sweep")
    assert desk.sky("down", "--expired", "--yes")[1] == "rehearsal: no machine found.\n"
    desk.expire()
    assert desk.sky("down", "--expired", "--yes")[0] == 0
    assert desk.cloud.machines() == []


def test_a_pool_warns_of_machines_that_were_forgotten(desk: Desk) -> None:
    """And says what to type."""
    desk.forget("sweep")
    desk.expire()
    done = subprocess.run(
        [sys.executable, "-c", CLIENT.replace("logging=False", "logging=True"), "train"],
        cwd=desk.folder,
        env=desk.env,
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "1 machine of pool 'sweep' was forgotten and is still billed" in done.stderr
    assert "sky down --expired" in done.stderr
    assert desk.sky("down", "--all", "--yes")[0] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["down"], "sky: Nothing says which machines to end. Name a pool, or write --expired or --all.\n"),
        (["down", "sweep"], "sky: There is no terminal here to ask whether to end them. Write --yes.\n"),
    ],
)
def test_nothing_is_ended_that_nobody_named(desk: Desk, words: list[str], complaint: str) -> None:
    """Nor without being asked."""
    desk.forget("sweep")
    code, _, said = desk.sky(*words)
    assert (code, said) == (2, complaint)
    assert len(desk.cloud.machines()) == 1
    assert desk.sky("down", "--all", "--yes")[0] == 0


def test_a_cloud_that_cannot_be_asked_is_named(desk: Desk) -> None:
    """For what it has is not known then, and the list must not look as if it had nothing."""
    text = (desk.folder / "skyward.toml").read_text()
    (desk.folder / "skyward.toml").write_text(text.replace('type = "Play"', 'type = "Plya"'))
    # There, and not in the directory of temporary files, would be the books of this person's other rehearsals.
    desk.env["TMPDIR"] = str(desk.folder)
    code, answer, complaint = desk.sky("ls")
    assert (code, answer) == (1, "")
    assert "skyward.toml cannot be asked, and may have more" in complaint
    assert "Plya" in complaint
