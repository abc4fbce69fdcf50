"""Values of a configuration file may stand elsewhere: in variables, files and keyrings."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.plan.config.references import Reference, filled_in, hidden, parts, references, written


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", ("plain",)),
        ("", ()),
        ("${NAME}", (Reference("variable", "NAME"),)),
        ("${NAME:-}", (Reference("variable", "NAME", ""),)),
        ("${NAME:-a:b}", (Reference("variable", "NAME", "a:b"),)),
        ("a${A}b${B}", ("a", Reference("variable", "A"), "b", Reference("variable", "B"))),
        ("${file:~/.key}", (Reference("file", "~/.key"),)),
        ("${keyring:https://a.example/b/me}", (Reference("keyring", "https://a.example/b/me"),)),
        ("$HOME/a $$ $", ("$HOME/a ", "$", " $")),
        ("$${NAME}", ("$", "{NAME}")),
    ],
)
def test_a_text_has_parts(text: str, found: tuple[str | Reference, ...]) -> None:
    """A dollar without a brace is one."""
    assert found == parts(text)


@pytest.mark.parametrize(
    "text", ["${", "${NAME", "${}", "${1A}", "${A B}", "${file:}", "${keyring:alone}", "${keyring:/a}"]
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    """With all forms there are."""
    with pytest.raises(ConfigError, match=r"\$\{NAME:-default\}.*\$\{keyring:SERVICE/USER\}"):
        parts(text)


def test_secrets_are_hidden() -> None:
    """Behind the reference that they came from; a short one only where it stands by itself."""
    assert ("a-b-c", {"b": "${B}"}) == filled_in("a-${B}-c", lambda reference: "b")
    assert "about ${B}" == hidden("about b", {"b": "${B}"})
    secret = "a\nhunter"
    assert "'${A}' is refused" == hidden(f"{secret!r} is refused", {secret: "${A}"})
    assert hidden(None, {"b": "${B}"}) is None
    assert "${TOKEN:-***}" == written("${TOKEN:-hunter2}")


def test_text_for_a_shell_has_no_references() -> None:
    """Its dollars are those of a shell on a node; what is malformed is refused elsewhere."""
    document = {"shell_vars": {"A": "${B}"}, "list": ["${C}", "${"], "number": 4}
    assert [(("list", 0), "${C}")] == [(at, str(one)) for at, one in references(document)]
