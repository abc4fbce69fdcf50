from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.pip_index import PipIndex
from skyward.model.spec.image import Image
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import LogConfig, Options, Worker
from skyward.model.spec.spec import Spec
from skyward.model.spec.volumes import Disk, Volume
from skyward.plan.config.named_pools import NamedPool, load_named
from skyward.plan.config.request import request


@frozen(kw_only=True)
class Cloud:
    """Stand for a provider."""

    region: str = "here"


@frozen
class Extra:
    """Stand for a plugin."""

    version: str = ""


def provider_of(name: str) -> Callable[..., Any]:
    """Return what makes a provider, of which there is one."""
    if name != "cloud":
        raise ConfigError(f"There is no provider {name!r}.", hint="Did you mean 'cloud'?")
    return Cloud


def load(text: str, name: str = "train") -> NamedPool:
    """Return what a text says about a pool."""
    return load_named(name, text, provider_of=provider_of, plugin_of=lambda name: Extra)


FULL = """
[pools.small]
nodes = 1

[pools.train]
provider = { type = "cloud", region = "eu" }
accelerator = "H100:8"
nodes = [2, 8]
memory = "64GB"
allocation = 0.8
plugins = ["extra", { type = "extra", version = "2" }]
env = { HF_HOME = "/data" }
selection = "first"
concurrency = 4
logging = { level = "DEBUG" }

[pools.train.image]
pip = ["torch"]
pip_indexes = [{ url = "https://example.org/simple", packages = ["torch"] }]

[pools.train.options]
shutdown_timeout = 10
"""


def test_a_table_says_what_keywords_would() -> None:
    """Everything that can be written in Python's flat way can be written in TOML."""
    made = request(name="train", named=lambda name: load(FULL, name))

    image = Image(
        pip=["torch"],
        pip_indexes=[PipIndex("https://example.org/simple", ["torch"])],
        env={"HF_HOME": "/data"},
    )
    spec = Spec(
        provider=Cloud(region="eu"),
        accelerator="H100:8",
        nodes=(2, 8),
        memory_gb=64,
        allocation=0.8,
        image=image,
        plugins=[Extra(), Extra("2")],
    )
    options = Options(
        selection="first", shutdown_timeout=10, worker=Worker(concurrency=4), logging=LogConfig(level="DEBUG")
    )
    assert ((spec,), options, "train") == (made.specs, made.options, made.name)


def test_a_provider_is_a_name_or_a_table_or_several() -> None:
    """A list means a spec for each, as in Python."""
    pool = load('[pools.train]\nprovider = ["cloud", { type = "cloud", region = "eu" }]')

    assert [Cloud(), Cloud(region="eu")] == pool.keywords["provider"]
    assert Cloud() == load('[pools.train]\nprovider = "cloud"').keywords["provider"]


def test_nodes_and_workers_may_be_tables() -> None:
    """Values that Python writes as objects are tables of their fields."""
    pool = load("[pools.train]\nnodes = { desired = 8, min = 4 }\nworker = { concurrency = 2 }")

    assert {"nodes": Nodes(8, min=4), "worker": Worker(concurrency=2)} == pool.keywords


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pools.trian]", "skyward.toml has no pool 'train'. Did you mean 'trian'. It has trian."),
        ("[pools.other]", "has no pool 'train'. It has other."),
        ("", "has no pool 'train'. It has none."),
        ("[[pools]]", r"pools in skyward.toml must be a table. Write \[pools.NAME\]"),
        ("[pools]\ntrain = 4", r"pools.train in skyward.toml must be a table, not 4"),
        ("[pools.train", "skyward.toml is no TOML: Expected"),
        ("[pools.train]\nprovider = 'clod'", "There is no provider 'clod'. Did you mean 'cloud'"),
        ("[pools.train]\nprovider = { region = 'eu' }", "a table with a type, not a table of region. Write provider"),
        ("[pools.train]\nprovider = 4", "provider must be a name or a table with a type, not 4"),
        ("[pools.train]\nprovider = { type = 'cloud', zone = 1 }", "provider of type 'cloud': .*zone"),
        ("[pools.train]\nimage = { pipp = ['torch'] }", "image has no setting 'pipp'. Did you mean 'pip'"),
        ("[pools.train]\nimage = { pip = 'torch' }", r"image: pip must be a list of text.*\['torch'\]"),
        ("[pools.train]\nimage = { pip_indexes = [{ url = 'https://x.org' }] }", "pip_indexes must have packages"),
        ("[pools.train]\nworker = { concurency = 4 }", "worker has no setting 'concurency'. .*'concurrency'"),
        ("[pools.train]\noptions = { selecton = 'first' }", "options has no setting 'selecton'. .*'selection'"),
        ("[pools.train]\noptions = 4", "options must be a table, not 4"),
        ("[pools.train]\nselection='first'\noptions={ selection='first' }", "selection is given twice"),
        ("[pools.train]\nnodes = { max = 4 }", "lacks desired, or min"),
        ("[pools.train]\non_event = 'print'", "on_event is a function and can only be given in Python"),
    ],
)
def test_what_cannot_be_understood_is_refused(text: str, message: str) -> None:
    """Each error names the file, what is wrong in it, and the nearest that would be right."""
    with pytest.raises(ConfigError, match=message) as caught:
        load(text)
    assert "skyward.toml" in str(caught.value)


def test_plugins_need_someone_to_make_them() -> None:
    """Where plugins cannot be looked up, a file that names some says so."""
    with pytest.raises(UsageError, match="plugins can only be given in Python"):
        load_named("train", "[pools.train]\nplugins = ['extra']", provider_of=provider_of)


def test_a_refused_table_keeps_its_secrets() -> None:
    """A provider's settings may hold a key, so only their names are shown."""
    with pytest.raises(ConfigError, match="a table of api_key") as caught:
        load("[pools.train]\nprovider = { api_key = 'hunter2' }")
    assert "hunter2" not in str(caught.value)


def test_an_accelerator_is_written_as_in_python() -> None:
    """A name alone means any memory, and one with a memory that one."""
    pools = (
        load('[pools.any]\naccelerator = "A100:2"\n[pools.train]\naccelerator = "A100-40GB"\n'),
        load('[pools.any]\naccelerator = "A100:2"\n[pools.train]\naccelerator = "A100-40GB"\n', "any"),
    )
    known = [request((), one.keywords).specs[0].accelerator for one in pools]
    assert [(40,), (80, 40)] == [one.memories_gb for one in known if one is not None]


def test_volumes_are_tables() -> None:
    """A disk has a name, and a bucket has none."""
    text = '[pools.train]\nvolumes = [{ bucket = "my-data", mount = "/data" }, { name = "scratch" }]'
    assert [Volume("my-data", "/data"), Disk("scratch")] == load(text).keywords["volumes"]
    assert [Disk("scratch")] == load('[pools.train]\nvolume = { name = "scratch" }').keywords["volume"]


def test_a_volume_that_cannot_be_is_refused_with_its_place() -> None:
    """As in Python."""
    with pytest.raises(ConfigError, match=r"^\[pools.train\] in skyward.toml: volumes: mount must not be '/etc'"):
        load('[pools.train]\nvolumes = [{ bucket = "my-data", mount = "/etc" }]')
