"""The schema for editors says what the reader accepts, because it is made from the same classes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
from jsonschema import Draft7Validator

from skyward.model.spec.image import Image
from skyward.model.spec.options import Options
from skyward.plan.config.config_schema import config_schema
from skyward.plan.config.keyword_checks import known_keywords
from skyward.registry import installed

ROOT = Path(__file__).parents[3]


def examples() -> list[str]:
    """Return every file that the pages show."""
    blocks = (
        block
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    # Others are of projects and of other programs.
    ours = re.compile(r"^\[(pools|providers|images|options|metrics|plugins)\b", re.MULTILINE)
    return [block for block in blocks if ours.search(block)]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of what is installed here."""
    return config_schema(installed().providers, installed().plugins)


def errors(schema: dict[str, Any], text: str) -> list[str]:
    """Return what the schema refuses in a file."""
    return [error.message for error in Draft7Validator(schema).iter_errors(tomllib.loads(text))]


def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    """As of draft 7."""
    Draft7Validator.check_schema(schema)


def test_it_has_every_setting(schema: dict[str, Any]) -> None:
    """None that was added to a class is missing, whatever its table is."""
    pool, image = schema["definitions"]["pool"]["properties"], schema["definitions"]["image"]["properties"]
    assert {*known_keywords(), "options", "extends"} - {"on_event", "health_checker"} == set(pool)
    assert {*(field.name for field in attrs.fields(Image)), "extends"} == set(image)
    assert {field.name for field in attrs.fields(Options)} >= set(schema["definitions"]["options"]["properties"])
    assert "How often a task is sent again" in pool["retry_on_interruption"]["description"]


@pytest.mark.parametrize("text", examples(), ids=range(len(examples())))
def test_it_accepts_what_the_pages_show(schema: dict[str, Any], text: str) -> None:
    """Every file in the documents."""
    assert [] == errors(schema, text)


@pytest.mark.parametrize(
    "line",
    [
        'provider = "Local"',
        'provider = ["Local", { type = "SSH", hosts = ["a"], port = 22 }]',
        'provider = { extends = "lab", anything = 4 }',
        'provider = { type = "OfAnotherDistribution", anything = 4 }',
        "nodes = { min = 0, max = 8 }",
        'nodes = "${NODES:-4}"',
        "nodes = [2, 8]",
        "allocation = 0.8",
        'allocation = "spot"',
        'memory = "64GB"',
        'ports = [8080, "8081:8082", [1, 2]]',
        'worker = { per_node = "accelerator" }',
        'logging = { level = "debug" }',
        "logging = false",
        'console = "quiet"',
        'image = "base"',
        'image = { metrics = ["CPU", { type = "Disk", path = "/" }], python = "3.12" }',
        'volumes = [{ bucket = "a", mount = "/data" }, { name = "scratch" }]',
        'volume = { name = "scratch" }',
        'plugins = ["torch", { type = "torch", backend = "gloo" }]',
    ],
)
def test_it_accepts_what_is_read(schema: dict[str, Any], line: str) -> None:
    """References, names of tables, and what other distributions bring."""
    assert [] == errors(schema, f"[pools.train]\n{line}\n")


@pytest.mark.parametrize(
    "text",
    [
        "[pool.train]",
        "[pools.train]\nacelerator = 'H100'",
        "[pools.train]\nnodes = 'four'",
        "[pools.train]\nbudget = true",
        "[pools.train]\nimage = { pipp = [] }",
        "[pools.train]\nimage = { pip = 'torch' }",
        "[pools.train]\nprovider = { type = 'Local', regoin = 'eu' }",
        "[pools.train]\nworker = { concurrency = 'x' }",
        "[options]\nnodes = 4",
        "[images.base]\npip = 4",
        "pools = 4",
    ],
)
def test_it_refuses_what_is_wrong(schema: dict[str, Any], text: str) -> None:
    """Wrong keys, and values of a wrong type."""
    assert errors(schema, text)
