import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.events import metric
from skyward.model.fields.pip_index import PipIndex
from skyward.model.spec.image import DEFAULT_IMAGE, Image, check_python, python_version

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
TORCH = "https://download.pytorch.org/whl/cu128"

packages = st.lists(st.sampled_from(["torch", "numpy", "jax", "pandas"]), unique=True)
environments = st.dictionaries(st.sampled_from(["A", "B", "C"]), st.sampled_from(["", "1", "x y"]))
images = st.builds(
    Image,
    pip=packages,
    apt=packages,
    env=environments,
    shell_vars=environments,
    pip_extra_index_url=st.none() | st.just(TORCH),
    pip_indexes=st.just([]) | packages.filter(bool).map(lambda names: [PipIndex(TORCH, names)]),
    includes=packages,
)


def test_the_defaults_are_those_of_the_client() -> None:
    """An image without wishes asks for nothing beyond what is installed here."""
    assert Image() == DEFAULT_IMAGE
    assert "auto" == DEFAULT_IMAGE.python
    assert 300 == DEFAULT_IMAGE.bootstrap_timeout
    assert metric.Default() == DEFAULT_IMAGE.metrics
    assert not DEFAULT_IMAGE.needs_environment


def test_lists_and_dicts_become_frozen() -> None:
    """What a user writes as lists and dicts is held so that an image is hashable."""
    image = Image(
        pip=["torch"],
        pip_indexes=[PipIndex(url=TORCH, packages=["torch"])],
        apt=["git"],
        env={"A": "1"},
        includes=["./src", Path("data")],
        excludes=["*.pyc"],
        metrics=[metric.CPU()],
    )

    assert ("torch",) == image.pip
    assert {"A": "1"} == image.env
    assert ("./src", "data") == image.includes
    assert (metric.CPU(),) == image.metrics
    assert hash(image) == hash(attrs.evolve(image))


def test_no_metrics_is_none_of_them() -> None:
    """None switches metrics off."""
    assert () == Image(metrics=None).metrics


@given(images)
def test_an_image_is_a_value(image: Image) -> None:
    """It pickles to an equal image with the same hashes."""
    again = pickle.loads(pickle.dumps(image))

    assert image == again
    assert hash(image) == hash(again)
    assert image.content_hash() == again.content_hash()


@given(images, images)
def test_the_content_hash_says_what_is_installed(one: Image, other: Image) -> None:
    """Two images have one content hash exactly when the same is installed for them."""

    def installed(image: Image) -> object:
        indexes = tuple((index.url, frozenset(index.packages)) for index in image.pip_indexes)
        return frozenset(image.pip), indexes, image.pip_extra_index_url, frozenset(image.apt)

    assert (installed(one) == installed(other)) == (one.content_hash() == other.content_hash())


def test_the_content_hash_is_twelve_hexadecimal_characters() -> None:
    """It can name a folder, a tag or a machine image."""
    assert 12 == len(Image().content_hash())
    assert int(Image().content_hash(), 16) >= 0


BASE = Image(pip=["torch"], pip_indexes=[PipIndex(TORCH, ["torch"])], apt=["git"], env={"A": "1", "B": "2"})


@pytest.mark.parametrize(
    "change",
    [
        {"python": "3.99"},
        {"python": f"{HERE}.1"},
        {"pip": ["torch", "numpy"]},
        {"pip": ["torch==2.8"]},
        {"pip": []},
        {"pip_indexes": []},
        {"pip_indexes": [PipIndex(TORCH, ["torchvision"])]},
        {"pip_indexes": [PipIndex("https://example.org/simple", ["torch"])]},
        {"pip_extra_index_url": TORCH},
        {"apt": ["git", "ffmpeg"]},
        {"pip": ["git"], "apt": ["torch"]},
    ],
)
def test_what_changes_the_disk_changes_the_content_hash(change: dict[str, Any]) -> None:
    """Python, packages, indexes and system packages are on the disk."""
    assert BASE.content_hash() != attrs.evolve(BASE, **change).content_hash()


@pytest.mark.parametrize(
    "change",
    [
        {"python": HERE},
        {"env": {"B": "2", "A": "1"}},
        {"env": {}},
        {"shell_vars": {"N": "$(nproc)"}},
        {"includes": ["./src"]},
        {"excludes": ["*.pyc"]},
        {"metrics": None},
        {"skyward_source": "local"},
        {"bootstrap_timeout": 60},
    ],
)
def test_what_leaves_the_disk_alone_leaves_the_content_hash_alone(change: dict[str, Any]) -> None:
    """An installed environment is reused when only variables, files, metrics or limits differ."""
    assert BASE.content_hash() == attrs.evolve(BASE, **change).content_hash()


def test_the_order_of_indexes_counts() -> None:
    """Which index is asked first may decide what is installed."""
    one, other = PipIndex(TORCH, ["torch"]), PipIndex("https://example.org/simple", ["torch"])

    assert Image(pip_indexes=[one, other]).content_hash() != Image(pip_indexes=[other, one]).content_hash()


def test_the_content_hash_is_the_same_in_every_process() -> None:
    """Python's own hash of text differs from process to process; this one must not."""
    code = "from skyward.model.spec.image import Image; print(Image(pip=['b', 'a'], apt=['d', 'c']).content_hash())"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert Image(pip=["b", "a"], apt=["d", "c"]).content_hash() == there.stdout.strip()


@pytest.mark.parametrize(
    ("image", "needs"),
    [
        (Image(), False),
        (Image(pip=["torch"]), True),
        (Image(pip_indexes=[PipIndex(TORCH, ["torch"])]), True),
        (Image(apt=["git"], env={"A": "1"}, includes=["x"]), False),
    ],
)
def test_only_packages_need_an_environment(image: Image, needs: bool) -> None:
    """What Python packages are asked for decides whether an environment has to be made."""
    assert needs is image.needs_environment


def test_auto_is_the_clients_minor_version() -> None:
    """`"auto"` resolves to where this runs; a version stays as it is."""
    assert HERE == python_version(Image())
    assert "3.12.4" == python_version(Image(python="3.12.4"))


@pytest.mark.parametrize("python", ["auto", HERE, f"{HERE}.0", f"{HERE}.99"])
def test_the_same_minor_version_passes(python: str) -> None:
    """Functions cross between patch releases."""
    check_python(Image(python=python))


@pytest.mark.parametrize("python", ["3.99", "3.1", "3.99.1"])
def test_another_minor_version_is_refused_with_both_named(python: str) -> None:
    """Functions do not cross minor versions."""
    with pytest.raises(ConfigError, match=rf"asks for Python {python} but this client runs Python {HERE}"):
        check_python(Image(python=python))


@pytest.mark.parametrize("source", ["github", "pypi"])
def test_nodes_run_the_clients_own_files(source: Any) -> None:
    """Any other source could be another version, and the error says so."""
    with pytest.raises(ConfigError, match="client and node must run the same code"):
        Image(skyward_source=source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pip": "torch"}, r"pip must be a list of text, not the text 'torch'. Write pip=\['torch'\]"),
        ({"pip": ["-r requirements.txt"]}, "'-r requirements.txt' is an option"),
        ({"pip": ["--index-url=x"]}, "is an option.*pip_extra_index_url="),
        ({"pip": [1]}, r"pip\[0\] must be text, not 1"),
        ({"pip": ["torch\nnumpy"]}, r"pip\[0\] must be one line"),
        ({"pip": 5}, "pip must be a list of text, not 5"),
        ({"apt": "git"}, "apt must be a list"),
        ({"apt": ["git ffmpeg"]}, "one each; 'git ffmpeg' is none"),
        ({"apt": ["-y"]}, "apt must be a list of package names"),
        ({"includes": "./src"}, r"Write includes=\['./src'\]"),
        ({"includes": Path("src")}, "includes must be a list of paths.*brackets"),
        ({"excludes": "*.pyc"}, "excludes must be a list"),
        ({"env": {"A": 1}}, r"env\['A'\] must be text"),
        ({"env": ["A=1"]}, "env must be a dict"),
        ({"shell_vars": {"A-B": "1"}}, "shell_vars has the name 'A-B'"),
        ({"python": 3.13}, r"python must be \"auto\" or a version.*not 3.13.*in quotes"),
        ({"python": ">=3.12"}, "python must be"),
        ({"python": "3"}, "python must be"),
        ({"python": "2.7"}, "python must be"),
        ({"pip_indexes": PipIndex(TORCH, ["torch"])}, "pip_indexes must be a list.*brackets"),
        ({"pip_indexes": [TORCH]}, "pip_indexes must be a list of sky.PipIndex, not of str"),
        ({"pip_indexes": 4}, "pip_indexes must be a list of sky.PipIndex, not of int"),
        ({"pip_extra_index_url": "index.example.org"}, "pip_extra_index_url must be the URL of a package index"),
        ({"metrics": ["cpu"]}, "metrics must be a list of metrics, or None"),
        ({"metrics": metric.CPU}, "metrics must be a list of metrics, or None"),
        ({"skyward_source": "locl"}, 'skyward_source must be "auto" or "local", not \'locl\'.*mean "local"'),
        ({"bootstrap_timeout": 0}, "bootstrap_timeout must be more than 0 seconds, not 0"),
        ({"bootstrap_timeout": "300"}, "bootstrap_timeout must be a number of seconds"),
    ],
)
def test_what_no_field_takes_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each error names the parameter, the value, and what to write."""
    with pytest.raises(ConfigError, match=message):
        Image(**arguments)


def test_a_changed_image_is_checked_again() -> None:
    """`attrs.evolve` runs every check."""
    with pytest.raises(ConfigError, match="pip must be a list"):
        attrs.evolve(Image(), pip="torch")


def test_the_repr_keeps_secrets() -> None:
    """Neither the text of variables nor passwords in URLs are shown; their names are."""
    image = Image(
        env={"TOKEN": "hunter2"},
        shell_vars={"KEY": "echo hunter2"},
        pip_extra_index_url="https://me:hunter2@example.org/simple",
        pip_indexes=[PipIndex("https://me:hunter2@example.org/simple", ["torch"])],
    )

    assert "hunter2" not in repr(image)
    assert "TOKEN" in repr(image)
    assert "example.org" in repr(image)
