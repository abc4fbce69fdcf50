import sys
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given, strategies as st

from skyward.errors import ConfigError, UsageError
from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.spec.image import Image
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import Options, Worker
from skyward.model.spec.spec import Spec
from skyward.plan.config.keyword_checks import known_keywords
from skyward.plan.config.request import NamedPool, Request, request


@frozen
class Cloud:
    """Stand for a provider."""

    region: str = ""


def flat(**keywords: Any) -> Request:
    """Return what flat keywords are made into."""
    return request((), keywords)


def named(**keywords: Any) -> Any:
    """Return a reader that knows one pool."""
    return lambda name: NamedPool(keywords=keywords, where=f"[pools.{name}] in skyward.toml")


def test_nothing_said_is_one_node_here() -> None:
    """`sky.Compute()` is a spec and options with their defaults."""
    assert Request(specs=(Spec(),), options=Options(), name="pool") == request()


def test_flat_keywords_go_where_they_belong() -> None:
    """Fields of specs, options and workers can be written side by side."""
    made = flat(
        provider=Cloud(),
        accelerator="H100:8",
        nodes=(2, 8),
        selection="first",
        shutdown_timeout=10,
        concurrency=4,
        executor="process",
    )

    assert (Spec(provider=Cloud(), accelerator="H100:8", nodes=(2, 8)),) == made.specs
    assert (
        Options(selection="first", shutdown_timeout=10, worker=Worker(concurrency=4, executor="process"))
        == made.options
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"cpu": 8}, {"vcpus": 8}),
        ({"memory": "32GB"}, {"memory_gb": 32}),
        ({"memory": 32}, {"memory_gb": 32}),
        ({"display": "quiet"}, {"console": "silent"}),
        ({"env": {"A": "1"}}, {"image": Image(env={"A": "1"})}),
        ({"concurrency": 4}, {"worker": Worker(concurrency=4)}),
        ({"cpu": None, "memory": None, "env": None}, {}),
    ],
)
def test_shorter_and_older_words_mean_the_same(written: dict[str, Any], meant: dict[str, Any]) -> None:
    """A word and what it stands for make equal requests."""
    assert flat(**meant) == flat(**written)


def test_env_is_merged_into_the_image() -> None:
    """The image keeps its variables, and the keyword's win."""
    image = Image(pip=["torch"], env={"A": "1", "B": "1"})

    made = flat(image=image, env={"B": "2", "C": "3"})

    assert {"A": "1", "B": "2", "C": "3"} == made.specs[0].image.env
    assert ("torch",) == made.specs[0].image.pip


def test_several_providers_mean_a_spec_for_each() -> None:
    """The specs differ in nothing but the provider, in the order given."""
    made = flat(provider=[Cloud("a"), Cloud("b")], accelerator="T4")

    assert (Spec(provider=Cloud("a"), accelerator="T4"), Spec(provider=Cloud("b"), accelerator="T4")) == made.specs


def test_an_empty_list_of_providers_is_refused() -> None:
    """A list of no providers is no request."""
    with pytest.raises(UsageError, match="provider is an empty list"):
        flat(provider=[])


def test_positional_specs_are_taken_as_they_are() -> None:
    """Specs and options are passed on."""
    specs = (Spec(provider=Cloud("a")), Spec(provider=Cloud("b")))
    options = Options(selection="first")

    assert Request(specs=specs, options=options, name="pool") == request(specs, options=options)


def test_a_named_pool_has_its_name_and_its_settings() -> None:
    """What the file says is read as flat keywords are."""
    made = request(name="train", named=named(nodes=[2, 8], cpu=4, concurrency=2))

    assert (
        Request(specs=(Spec(nodes=(2, 8), vcpus=4),), options=Options(worker=Worker(concurrency=2)), name="train")
        == made
    )


@pytest.mark.parametrize(
    ("keywords", "options"), [({"label": "sweep-7", "nodes": 2}, None), ({"nodes": 2}, Options(label="sweep-7"))]
)
def test_a_label_is_the_pools_name(keywords: dict[str, Any], options: Options | None) -> None:
    """Beside any other keyword, or in the options."""
    assert request((), keywords, options=options).name == "sweep-7"
    assert request((Spec(),), options=Options(label="sweep-7")).name == "sweep-7"


@pytest.mark.parametrize("label", ["", "two words", "-x", "x" * 64, "ü", 7, "a/b", "a\n"])
def test_a_label_is_one_word(label: Any) -> None:
    """It is read in tags, in tables and in a shell."""
    with pytest.raises(ConfigError, match="label must be 1 to 63 letters"):
        request((), {"label": label})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"specs": (Spec(),), "keywords": {"nodes": 2}}, r"not positional specs and flat keywords \(nodes=\)"),
        ({"specs": (Spec(),), "keywords": {"selection": "first"}}, r"options=sky.Options\(...\)"),
        ({"specs": (Spec(),), "name": "train"}, "not positional specs and name=. A named pool is changed in"),
        ({"keywords": {"nodes": 2}, "name": "train"}, r"not flat keywords \(nodes=\) and name="),
        (
            {"specs": (Spec(),), "keywords": {"cpu": 2}, "name": "train"},
            r"not positional specs and flat keywords \(cpu=\) and name=",
        ),
    ],
)
def test_the_three_ways_exclude_each_other(arguments: dict[str, Any], message: str) -> None:
    """The error says which ways were mixed, and is a TypeError."""
    with pytest.raises(UsageError, match=message) as caught:
        request(**arguments, named=named())
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (([Spec()],), r"by position, not list. Put a \* before"),
        ((Cloud(),), "by position, not Cloud. Write provider="),
        (("train",), "by position, not str"),
    ],
)
def test_only_specs_are_positional(specs: tuple[Any, ...], message: str) -> None:
    """Anything else by position is answered with how to write it."""
    with pytest.raises(UsageError, match=message):
        request(specs)


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("acelerator", "has no setting 'acelerator'. Did you mean 'accelerator'?"),
        ("concurency", "Did you mean 'concurrency'?"),
        ("memory_gib", "Did you mean 'memory_gb'?"),
        ("pip", r"It belongs to the image: image=sky.Image\(pip="),
        ("zzzzz", "It has provider, accelerator, nodes"),
    ],
)
def test_an_unknown_keyword_is_answered_with_the_nearest(keyword: str, message: str) -> None:
    """What is close, or where it belongs, is offered."""
    with pytest.raises(UsageError, match=message):
        flat(**{keyword: 1})


@given(st.text(max_size=12).filter(lambda keyword: keyword not in known_keywords()))
def test_no_unknown_keyword_passes(keyword: str) -> None:
    """Whatever is not known is refused by its name, even what no user would write."""
    with pytest.raises(UsageError) as caught:
        flat(**{keyword: 1})
    assert repr(keyword) in caught.value.message


@pytest.mark.parametrize(
    ("keywords", "options", "message"),
    [
        ({"vcpus": 8, "cpu": 8}, None, "vcpus= and cpu= are the same setting, given twice"),
        ({"memory": "8GB", "memory_gb": 8}, None, "memory= and memory_gb= are the same setting"),
        ({"console": "log", "display": "log"}, None, "console= and display= are the same setting"),
        ({"concurrency": 2, "worker": Worker()}, None, "concurrency= and worker= both say how workers"),
        ({"concurrency": 2}, Options(worker=Worker()), "concurrency= and options.worker both say how workers"),
        ({"per_node": 2}, Options(worker=Worker()), "per_node= and options.worker"),
        ({"selection": "first"}, Options(selection="available"), "selection is given twice, as selection= and in opt"),
        ({"worker": Worker()}, Options(worker=Worker()), "worker is given twice"),
    ],
)
def test_a_setting_is_given_once(keywords: dict[str, Any], options: Options | None, message: str) -> None:
    """The same setting in two places leaves open which counts, even if they agree."""
    with pytest.raises(UsageError, match=message):
        request((), keywords, options=options)


def test_flat_keywords_fill_what_options_leave_open() -> None:
    """Options and flat keywords go together where they say different things."""
    made = request((), {"selection": "first", "concurrency": 2}, options=Options(shutdown_timeout=5))

    assert Options(selection="first", shutdown_timeout=5, worker=Worker(concurrency=2)) == made.options


@pytest.mark.parametrize("options", [{"selection": "first"}, "first", Options])
def test_options_are_options(options: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError, match=r"options must be sky.Options"):
        request(options=options)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"nodes": 0}, "^nodes must be"),
        ({"cpu": 0}, "^cpu must be a finite number above zero, not 0"),
        ({"memory": "lots"}, "^memory must be an amount of memory, not 'lots'"),
        ({"display": "spiner"}, "^display must be"),
        ({"env": {"A": 1}}, r"^env\['A'\] must be text"),
        ({"image": "torch", "env": {"A": "1"}}, "^image must be a sky.Image"),
        ({"concurrency": 0}, "^concurrency must be"),
        ({"provider": [Cloud]}, "^provider must be a value, not the class"),
    ],
)
def test_a_wrong_value_is_refused_under_the_word_that_was_written(keywords: dict[str, Any], message: str) -> None:
    """An error about `cpu=` does not speak of `vcpus`."""
    with pytest.raises(ConfigError, match=message):
        flat(**keywords)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"nodes": 0}, r"^\[pools.train\] in skyward.toml: nodes must be"),
        ({"acelerator": "H100"}, r"^\[pools.train\] in skyward.toml: .*'acelerator'. Did you mean 'accelerator'"),
    ],
)
def test_an_error_in_a_file_names_the_table(keywords: dict[str, Any], message: str) -> None:
    """A user who reads it knows where to look."""
    with pytest.raises(ConfigError, match=message):
        request(name="train", named=named(**keywords))


@pytest.mark.parametrize("name", ["", "  ", 3])
def test_a_name_is_text(name: Any) -> None:
    """What can name no pool is refused before any file is looked for."""
    with pytest.raises(UsageError, match="name must be the name of a pool"):
        request(name=name, named=named())


@pytest.mark.parametrize("way", ["flat", "spec", "named"])
def test_another_python_is_refused_at_once(way: str) -> None:
    """However the image is given, a Python that functions cannot cross to is refused before anything is rented."""
    image = Image(python="3.99")
    arguments: dict[str, dict[str, Any]] = {
        "flat": {"keywords": {"image": image}},
        "spec": {"specs": (Spec(), Spec(image=image))},
        "named": {"name": "train", "named": named(image=image)},
    }
    with pytest.raises(ConfigError, match=rf"asks for Python 3.99 .* runs Python 3.{sys.version_info.minor}"):
        request(**arguments[way])


def test_warnings_are_said_once() -> None:
    """Specs with the same flaw share one sentence."""
    assert 1 == len(flat(provider=[Cloud("a"), Cloud("b")], ttl=0).warnings)


def test_short_spellings_reach_the_spec_as_values() -> None:
    """The flat way parses as a spec does."""
    (spec,) = flat(accelerator="H100:8", nodes=4).specs

    assert (Accelerator("H100", count=8), Nodes(4)) == (spec.accelerator, spec.nodes)


def test_ports_of_a_head_node_need_one_from_the_start() -> None:
    """A pool that opens without nodes is refused, with what to do."""
    with pytest.raises(ConfigError, match=r"ports= forwards ports of the head node.*Write min=1, or pool\.forward"):
        flat(nodes=Nodes(min=0, max=4), ports=[8888])
    assert flat(nodes=Nodes(1, max=4), ports=[8888]).options.ports
