"""All that is wrong in configuration files is found, whatever is opened of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from skyward import registry
from skyward.plan.config.config_check import problems_of
from skyward.plan.config.config_document import Config, Layer, config_of
from skyward.plan.config.config_tree import parsed, refusal
from skyward.plan.config.key_places import dotted
from skyward.plan.config.keyword_checks import known_keywords
from skyward.plan.config.pool_file_rules import wishes

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def config(text: str) -> Config:
    """Return what a text says."""
    return config_of([Layer("skyward.toml", text, parsed(text, "skyward.toml"))])


def keys(text: str) -> list[str]:
    """Return the keys at which something is wrong."""
    found = problems_of(
        config(text), provider_of=registry.provider, plugin_of=registry.plugin, look_up=lambda reference, file: "3"
    )
    return [dotted(problem.at) for problem in found]


@pytest.mark.parametrize("text", re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
def test_what_the_page_shows_is_right(text: str) -> None:
    """Every file in it, with the providers and plugins that are installed here."""
    assert [] == keys(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("[pools.train]\nnodes = 2\n", []),
        ("[images.base]\npipp = 1\n[images.more]\nextends = 'base'\n[pools.a]\nimage = 'more'", ["images.base.pipp"]),
        ("[providers.lab]\ntype = 'SSH'\n", ["providers.lab"]),
        ("[providers.lab]\nhosts = ['a']\n", ["providers.lab"]),
        ("[metrics.Disk]\ninterval = 0\n", ["metrics.Disk.interval"]),
        ("[plugins.x]\ntype = 'tourch'\n", ["plugins.x.type"]),
        ("[options]\nbudget = 0\n[pools.a]\n[pools.b]\n", ["options.budget"]),
        ("[pools.a]\nvcpus = 2\ncpu = 2\n", ["pools.a"]),
        ("[pools.b]\nnodes = 0\n[pools.a]\nttl = -1\n[pool]\n", ["pools.b.nodes", "pools.a.ttl", "pool"]),
    ],
)
def test_each_error_is_at_its_key(text: str, found: list[str]) -> None:
    """Once, in the order of the lines, whether a table is used or not."""
    assert found == keys(text)


TEXTS = st.sampled_from(["Local", "SSH", "base", "torch", "${A}", "${A", "$$", "CPU", "spot", "H100:8", "10s", "4", ""])
KEYS = st.sampled_from(
    [*known_keywords(), "type", "extends", "options", "pip", "metrics", "hosts", "name", "base", "x"]
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-1, 9), st.booleans(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
SHELVES = st.dictionaries(
    st.sampled_from(["base", "torch", "Local"]), st.dictionaries(KEYS, VALUES, max_size=4), max_size=2
)
TOPS = st.sampled_from(["providers", "images", "plugins", "metrics", "pools", "options", "extends", "x"])


@given(st.dictionaries(TOPS, st.one_of(SHELVES, VALUES), max_size=4))
def test_any_document_is_read_or_refused(document: dict[str, object]) -> None:
    """Whatever it has, in whatever place: no other error comes of it."""
    config = config_of([Layer("skyward.toml", "", document)])
    found = problems_of(
        config, provider_of=registry.provider, plugin_of=registry.plugin, look_up=lambda reference, file: "3"
    )
    assert all("skyward.toml:1:1: " in str(refusal([problem], config.texts)) for problem in found)
    assert all(isinstance(wish, str) for wish in wishes(document))
