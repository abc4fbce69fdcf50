from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.fields.pip_index import PipIndex
from skyward.plain import redacted

URL = "https://example.org/simple"


def test_it_is_a_hashable_value() -> None:
    """Lists become tuples; equal indexes are one in a set."""
    assert 1 == len({PipIndex(URL, ["torch"]), PipIndex(url=URL, packages=("torch",))})


@pytest.mark.parametrize("url", ["http://localhost:3141/root", "file:///srv/wheels", URL])
def test_web_and_file_urls_are_taken(url: str) -> None:
    """An index is on the web or on a disk."""
    assert url == PipIndex(url, ["torch"]).url


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "https://", "https://a b", "", None, 3])
def test_other_urls_are_refused(url: Any) -> None:
    """What is no address of an index is refused by the parameter's name."""
    with pytest.raises(ConfigError, match=r"^url must "):
        PipIndex(url, ["torch"])


def test_a_refused_url_keeps_its_password() -> None:
    """The error hides what stands before the host."""
    with pytest.raises(ConfigError, match=r"//\*\*\*@example.org") as caught:
        PipIndex("ftp://me:hunter2@example.org", ["torch"])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        ("torch", r"Write packages=\['torch'\]"),
        ([], r"packages must name at least one package.*pip_extra_index_url"),
        (["torch==2.8"], r"not 'torch==2.8'. Versions belong in Image\(pip="),
        (["-torch"], "packages must be names of packages"),
    ],
)
def test_packages_are_plain_names(packages: Any, message: str) -> None:
    """An index is scoped by names; versions are the requirement's."""
    with pytest.raises(ConfigError, match=message):
        PipIndex(URL, packages)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@x.example/simple", "https://***@x.example/simple"),
        ("https://me:p@ss@x.example/simple", "https://***@x.example/simple"),
        ("https://token@x.example", "https://***@x.example"),
        ("own @ git+https://me:p@ss@x.example/own@v1", "own @ git+https://***@x.example/own@v1"),
        ("https://a.example https://b:c@d.example", "https://a.example https://***@d.example"),
        ("https://a.example/own@v1", "https://a.example/own@v1"),
        ("mail me@x.example", "mail me@x.example"),
    ],
)
def test_passwords_are_hidden_wherever_they_stand(text: str, shown: str) -> None:
    """Also one with an unencoded @ in it."""
    assert shown == redacted(text)
