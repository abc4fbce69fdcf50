"""Machine images are listed and deleted by the program `sky`, from what the cloud tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SKY = Path(sys.executable).with_name("sky")

# A cloud whose shelf of images is a file.
THIRD = """
import json
from pathlib import Path

import attrs
import skyward as sky
from skyward.hookspecs import MachineImage, Offer, ProviderFacts, hookimpl


@hookimpl
def skyward_providers():
    return {"Shelf": Shelf}


@attrs.frozen
class Shelf:
    rows: str = ""

    @hookimpl
    def skyward_facts(self):
        return ProviderFacts(name="shelf", ends_own_bill=True, machine_images=True)

    @hookimpl
    async def skyward_offers(self):
        return [Offer(provider="shelf", instance_type="one")]

    @hookimpl
    async def skyward_launch(self):
        return []

    @hookimpl
    async def skyward_instances(self):
        return []

    @hookimpl
    async def skyward_terminate(self):
        pass

    @hookimpl
    async def skyward_machine_images(self):
        if not self.rows:
            return []
        return [MachineImage(provider="shelf", **row) for row in json.loads(Path(self.rows).read_text())]

    @hookimpl
    async def skyward_delete_machine_images(self, images):
        if any(image.id == "stuck" for image in images):
            raise sky.ProvisionError("stuck is still there.")
        gone = {image.id for image in images}
        rows = json.loads(Path(self.rows).read_text())
        Path(self.rows).write_text(json.dumps([row for row in rows if row["id"] not in gone]))
"""


class Desk:
    """A folder with a `skyward.toml`, in which programs are run, and a shelf of images."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shelf = folder / "shelf.json"
        self.fill()
        (folder / "skyward.toml").write_text(f'[pools.p]\nprovider = {{ type = "Shelf", rows = "{self.shelf}" }}\n')
        (folder / "third_party_of_shelf.py").write_text(THIRD)
        facts = folder / "third_party_of_shelf-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-of-shelf\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text("[skyward]\nshelf = third_party_of_shelf\n")

    def fill(self, *images: dict[str, Any]) -> None:
        """Have images there."""
        self.shelf.write_text(json.dumps(images))

    def left(self) -> list[str]:
        """List the images there are."""
        return [row["id"] for row in json.loads(self.shelf.read_text())]

    def sky(self, *words: str) -> tuple[int, str, str]:
        """Type something, and give code, answer and complaint."""
        done = subprocess.run(
            [str(SKY), *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def python(self, code: str) -> str:
        """Run a program, and give what it prints."""
        env = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.folder, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout


OLD = {"id": "old", "content_hash": "4f1e", "made_at": 0.0, "size_gb": 30, "monthly_cost": 1.5, "region": "here"}
ADDED = {"id": "added", "content_hash": "4f1e-0a", "made_at": time.time() - 90000, "monthly_cost": 0.5}
OTHER = {"id": "other", "content_hash": "5e", "made_at": time.time(), "state": "pending"}
STUCK = {"id": "stuck", "content_hash": "4f1e"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_images_are_listed_with_what_they_cost(desk: Desk) -> None:
    """A row for each, and the sum."""
    assert (0, "shelf: no machine image found.\n", "") == desk.sky("images", "--provider", "shelf")
    desk.fill(OLD, ADDED, OTHER)
    code, answer, complaint = desk.sky("images", "--provider", "shelf")
    assert (0, "") == (code, complaint)
    header, *rows, cost = answer.splitlines()
    assert ["HASH", "IMAGE", "PROVIDER", "REGION"] == header.split()[:4]
    assert [["4f1e", "old"], ["4f1e-0a", "added"], ["5e", "other"]] == [row.split()[:2] for row in rows]
    assert ["here", "?", "ready", "30", "GB", "$1.50/month"] == rows[0].split()[3:9]
    assert "They cost at most $2.00 a month." == cost


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["4f1e"], ["other"]),
        (["4f1e-0a"], ["old", "other"]),
        (["--older-than", "7d"], ["added", "other"]),
        (["4f1e", "5e", "--older-than", "1 h"], ["other"]),
    ],
)
def test_what_is_typed_is_deleted(desk: Desk, words: list[str], left: list[str]) -> None:
    """And nothing else."""
    desk.fill(OLD, ADDED, OTHER)
    code, answer, complaint = desk.sky("images", "delete", *words, "--yes")
    assert (0, "") == (code, complaint)
    assert left == desk.left()
    assert answer.splitlines()[-1].startswith("Deleted ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "sky: Nothing says which images to delete. Name a hash, or write --older-than 30d.\n"),
        (["4f1e"], "sky: There is no terminal here to ask whether to delete them. Write --yes.\n"),
        (["--older-than", "ever"], "sky: A length of time is a number and s, min, h, d or w, not 'ever'. Write 30d.\n"),
    ],
)
def test_nothing_is_deleted_that_nobody_named(desk: Desk, words: list[str], complaint: str) -> None:
    """Nor without being asked."""
    desk.fill(OLD)
    code, _, said = desk.sky("images", "delete", *words)
    assert (2, complaint) == (code, said)
    assert ["old"] == desk.left()


def test_images_are_listed_for_programs(desk: Desk) -> None:
    """As one JSON value."""
    desk.fill(OLD)
    code, answer, complaint = desk.sky("images", "--json", "--provider", "shelf")
    assert (0, "") == (code, complaint)
    [image] = json.loads(answer)["images"]
    assert ("4f1e", "old", 1.5) == (image["hash"], image["image"], image["monthly_cost"])


def test_an_image_that_is_not_there_is_not_deleted(desk: Desk) -> None:
    """What is asked for and not found is no success."""
    assert 1 == desk.sky("images", "--provider", "shelf", "delete", "nothing", "--yes")[0]


def test_what_cannot_be_deleted_is_named(desk: Desk) -> None:
    """For it goes on being billed."""
    desk.fill(STUCK)
    code, _, complaint = desk.sky("images", "delete", "4f1e", "--yes")
    assert 1 == code
    assert "shelf may not have deleted all, and what is left goes on being billed: stuck is still there." in complaint


def test_the_same_list_in_python(desk: Desk) -> None:
    """As values."""
    desk.fill(OLD, OTHER)
    code = "import skyward as sky; print([(one.id, one.state) for one in sky.machine_images()])"
    assert "[('old', 'ready'), ('other', 'pending')]\n" == desk.python(code)
