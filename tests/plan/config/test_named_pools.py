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
from skyward.plan.config.config_document import Layer, config_of
from skyward.plan.config.config_tree import parsed
from skyward.plan.config.named_pools import load_named, providers_named
from skyward.plan.config.references import Reference
from skyward.plan.config.request import NamedPool, request


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


def look_up(reference: Reference, file: str) -> str:
    """Return what a reference refers to, of which there are two."""
    known = {"REGION": "eu", "COUNT": "4", "TOKEN": "hunter2"}
    if reference.name not in known:
        raise ConfigError(f"The environment variable {reference.name} is not set.")
    return known[reference.name]


def load(text: str, name: str = "train", **below: str) -> NamedPool:
    """Return what a text, and those of files below it, say about a pool."""
    texts = {"skyward.toml": text, **{f"{file}.toml": each for file, each in below.items()}}
    config = config_of([Layer(file, each, parsed(each, file)) for file, each in texts.items()])
    return load_named(name, config, provider_of=provider_of, plugin_of=lambda name: Extra, look_up=look_up)


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
        ("[[pools]]", r"^skyward.toml:1:1: pools: pools must be a table. Write \[pools.NAME\]"),
        ("[pools]\ntrain = 4", r"^skyward.toml:2:1: pools.train: .* must be a table, not int"),
        ("[pools.train", "^skyward.toml:1:13: This is no TOML: Expected"),
        ("[pool.train]", "^skyward.toml:1:1: pool: A configuration file has no 'pool'. Did you mean 'pools'"),
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
    text = "[pools.train]\nplugins = ['extra']"
    config = config_of([Layer("skyward.toml", text, parsed(text, "skyward.toml"))])
    with pytest.raises(UsageError, match="plugins can only be given in Python"):
        load_named("train", config, provider_of=provider_of, look_up=look_up)


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
    with pytest.raises(
        ConfigError, match=r"^skyward.toml:2:34: pools.train.volumes\[0\].mount: volumes: mount must not be '/etc'"
    ):
        load('[pools.train]\nvolumes = [{ bucket = "my-data", mount = "/etc" }]')


def test_a_wrong_value_is_named_with_file_line_column_and_key() -> None:
    """So that an editor jumps there, whichever file the value comes from."""
    with pytest.raises(ConfigError, match=r"^skyward.toml:3:2: pools.train.nodes: nodes must be a whole number"):
        load("[pools.train]\n# how many\n nodes = 0\n")
    with pytest.raises(ConfigError, match=r"^own.toml:2:1: pools.train.nodes: nodes must be"):
        load("[pools.train]\ncpu = 2\n", own="[pools.train]\nnodes = 0\n")
    with pytest.raises(UsageError, match=r"^skyward.toml:2:1: .*no setting 'acelerator'. Did you mean 'accelerator'"):
        load("[pools.train]\nacelerator = 'H100'\n")


def test_all_that_is_wrong_with_a_pool_is_said_at_once() -> None:
    """Each with its place, also inside of an image."""
    with pytest.raises(ConfigError) as caught:
        load("[pools.train]\nnodes = 0\nregoin = 'eu'\nimage = { pip = 'torch', apt = 4 }\nprovider = 'clod'\n")
    lines = str(caught.value).splitlines()
    assert "5 errors in the configuration:" == lines[0]
    places = ["2:1: pools.train.nodes", "3:1: pools.train.regoin", "4:11: pools.train.image.pip"]
    places += ["4:26: pools.train.image.apt", "5:1: pools.train.provider"]
    assert [True] * 5 == [f"skyward.toml:{place}: " in line for place, line in zip(places, lines[1:], strict=True)]


def test_references_are_looked_up() -> None:
    """As text, or as the number that a setting takes; text for a shell on a node keeps its dollars."""
    text = """
[pools.train]
provider = { type = "cloud", region = "${REGION}" }
nodes = "${COUNT}"
env = { A = "$${REGION} ${REGION}" }
image = { shell_vars = { HERE = "${HOME}" } }
"""
    pool = load(text)
    assert (Cloud(region="eu"), 4) == (pool.keywords["provider"], pool.keywords["nodes"])
    assert {"A": "${REGION} eu"} == pool.keywords["env"]
    assert {"HERE": "${HOME}"} == pool.keywords["image"].shell_vars


def test_a_reference_is_looked_up_for_the_pool_that_needs_it() -> None:
    """Others may lack what they need; an error names file, line, column, key and variable."""
    text = "[pools.train]\nnodes = 2\n[pools.sweep]\nprovider = { type = 'cloud', region = '${NONE}' }"
    assert {"nodes": 2} == load(text).keywords
    message = r"^skyward.toml:4:30: pools.sweep.provider.region: The environment variable NONE is not set"
    with pytest.raises(ConfigError, match=message):
        load(text, "sweep")


@pytest.mark.parametrize(
    "line", ["nodes = '${TOKEN}'", "accelerator = 'a ${TOKEN}'", "image = { apt = ['${TOKEN} x'] }"]
)
def test_a_refused_value_that_was_looked_up_is_not_shown(line: str) -> None:
    """Its reference stands in its place."""
    with pytest.raises(ConfigError) as caught:
        load(f"[pools.train]\n{line}\n")
    assert "${TOKEN}" in str(caught.value)
    assert "hunter2" not in f"{caught.value!r} {caught.value.__context__!r}"


def test_a_short_value_that_was_looked_up_hides_no_other() -> None:
    """What the file says by itself is shown."""
    with pytest.raises(ConfigError, match=r"retry_on_interruption must be .*, not -4") as caught:
        load("[pools.train]\nnodes = '${COUNT}'\nretry_on_interruption = -4\nconcurrency = '-${COUNT}'\n")
    assert "concurrency must be a whole number of at least 1, not -${COUNT}" in str(caught.value)


TABLES = """
[providers.lab]
type = "cloud"
region = "eu"
[providers.cloud]
region = "north"
[images.base]
pip = ["torch"]
metrics = ["CPU", "users", { type = "Disk", path = "/data" }]
[images.more]
extends = "base"
apt = ["git"]
[metrics.users]
type = "Custom"
name = "users"
command = "who | wc -l"
[plugins.extra]
version = "3"
[options]
console = "silent"
worker = { concurrency = 2, executor = "process" }
[pools.train]
provider = ["lab", "cloud", { extends = "lab", region = "south" }]
image = { extends = "more", env = { A = "b" } }
plugins = ["extra"]
concurrency = 8
[pools.sweep]
extends = "train"
provider = "lab"
display = "minimal"
image = "base"
"""


def test_tables_are_used_by_their_names() -> None:
    """Providers, images, metrics and plugins; options are those of all pools, which may say otherwise."""
    train = request(name="train", named=lambda name: load(TABLES, name))
    assert [Cloud(region="eu"), Cloud(region="north"), Cloud(region="south")] == [one.provider for one in train.specs]
    image = train.specs[0].image
    assert (("torch",), ("git",), {"A": "b"}) == (image.pip, image.apt, image.env)
    assert ["cpu_percent", "users", "disk_percent:/data"] == [one.name for one in image.metrics]
    assert (Extra("3"),) == train.specs[0].plugins
    assert Options(console="silent", worker=Worker(concurrency=8, executor="process")) == train.options

    sweep = request(name="sweep", named=lambda name: load(TABLES, name))
    assert [Cloud(region="eu")] == [one.provider for one in sweep.specs]
    assert ("minimal", 8) == (sweep.options.console, sweep.options.workers.concurrency)
    assert () == sweep.specs[0].image.apt


def test_files_are_merged_table_by_table() -> None:
    """The project's says what the user's leaves open, and the other way around."""
    own = "[pools.train]\nnodes = 2\nregion = 'eu'\nimage = { pip = ['torch'], apt = ['git'] }\n[pools.mine]\nnodes = 3"
    project = "[pools.train]\nnodes = 4\nimage = { pip = ['jax'] }"
    pool = load(project, own=own)
    assert (4, "eu") == (pool.keywords["nodes"], pool.keywords["region"])
    assert Image(pip=["jax"], apt=["git"]) == pool.keywords["image"]
    assert {"nodes": 3} == load(project, "mine", own=own).keywords


def test_two_providers_are_not_mixed() -> None:
    """Settings of one are none of another."""
    own = "[pools.train]\nprovider = { type = 'other', zone = 'a' }"
    assert Cloud() == load("[pools.train]\nprovider = { type = 'cloud' }", own=own).keywords["provider"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[pools.train]\nextends = 'a'\n[pools.a]\nextends = 'b'\n[pools.b]\nextends = 'train'",
            "6:1: pools.b.extends: .*circle: train extends a extends b extends train",
        ),
        ("[pools.train]\nextends = 'train'", "circle: train extends train"),
        ("[pools.train]\nextends = 'tarin'", r"2:1: .*no \[pools.tarin\] to extend. Did you mean 'train'"),
        ("[pools.train]\nextends = 4", "extends must be the name of one of the pools, not 4"),
        ("[pools.train]\nimage = 'bsae'\n[images.base]", "2:1: .*no image 'bsae'. Did you mean 'base'"),
        ("[pools.train]\nimage = { extends = 'x' }", r"no \[images.x\] to extend. Write \[images.x\]"),
        ("[pools.train]\nimage = { metrics = ['CPUU'] }", r"2:22: .*no metric 'CPUU'. Did you mean \"CPU\""),
        ("[options]\nconsol = 'rich'\n[pools.train]", "2:1: options.consol: .*Did you mean 'console'"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(text: str, message: str) -> None:
    """With the nearest, or the chain of a circle."""
    with pytest.raises(ConfigError, match=message):
        load(text)


def test_the_providers_of_all_tables_are_found() -> None:
    """Those of pools, and those that no pool uses; nothing else of a pool is read."""
    text = "[pools.train]\nprovider = 'cloud'\nimage = { env = { A = '${NONE}' } }\n"
    text += "[providers.lab]\ntype = 'cloud'\nregion = 'a'"
    config = config_of([Layer("skyward.toml", text, parsed(text, "skyward.toml"))])
    assert [Cloud(), Cloud(region="a")] == providers_named(config, provider_of=provider_of, look_up=look_up)
