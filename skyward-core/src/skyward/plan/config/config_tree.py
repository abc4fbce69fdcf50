"""
Documents of configuration files as trees whose every value knows its file and its place there, and how they are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from skyward.errors import ConfigError
from skyward.plan.config.key_places import KeyPath, KeyPlace, dotted, error_place, key_places

__all__ = ["ConfigNode", "Problem", "merged", "parsed", "place_of", "plain", "refusal", "tree"]


@frozen
class ConfigNode:
    """
    Hold a value of a file, and where it is written.

    Args:
        value: A dict or a list of nodes, or what else TOML has.
        file: The file.
        at: Where in it.
    """

    value: Any
    file: str
    at: KeyPath = ()

    @property
    def is_table(self) -> bool:
        """Return whether it is a table."""
        return isinstance(self.value, dict)

    def get(self, key: str) -> ConfigNode | None:
        """Return what a table has of a name; None where it has nothing, or is no table."""
        found: ConfigNode | None = self.value.get(key) if isinstance(self.value, dict) else None
        return found

    def without(self, *keys: str) -> ConfigNode:
        """Return a table without some of its keys."""
        return ConfigNode({key: each for key, each in self.value.items() if key not in keys}, self.file, self.at)


@frozen
class Problem:
    """
    Say what is wrong in a file, and where.

    Args:
        file: The file.
        at: The key.
        message: What is wrong.
        hint: What to do about it.
        kind: Class of the error that it is raised as.
        place: Where in the file, if that is known without the key.
    """

    file: str
    at: KeyPath
    message: str
    hint: str | None = None
    kind: type[ConfigError] = ConfigError
    place: KeyPlace | None = None


def parsed(text: str, file: str) -> dict[str, Any]:
    """
    Return the document of a text.

    Args:
        text: The text.
        file: Where it comes from.

    Raises:
        ConfigError: If it is no TOML; the message has the line and the column.

    >>> parsed("nodes = \\n", "skyward.toml")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: skyward.toml:1:9: This is no TOML: Invalid value.
    """
    # Late, because few programs have a configuration file.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place, why = error_place(text, str(error))
        raise ConfigError(f"{file}:{place.line}:{place.column}: This is no TOML: {why}.") from None


def tree(value: Any, file: str, at: KeyPath = ()) -> ConfigNode:
    """
    Return a value with its place, and all below it.

    Args:
        value: As TOML was read.
        file: The file.
        at: Where in it.

    >>> tree({"nodes": 2}, "skyward.toml").get("nodes")
    ConfigNode(value=2, file='skyward.toml', at=('nodes',))
    """
    if isinstance(value, dict):
        return ConfigNode({key: tree(each, file, (*at, key)) for key, each in value.items()}, file, at)
    if isinstance(value, list):
        return ConfigNode([tree(each, file, (*at, index)) for index, each in enumerate(value)], file, at)
    return ConfigNode(value, file, at)


def plain(node: ConfigNode) -> Any:
    """
    Return the value without places.

    >>> plain(tree({"pools": {"train": {"nodes": [2, 8]}}}, "skyward.toml"))
    {'pools': {'train': {'nodes': [2, 8]}}}
    """
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value


def merged(upper: ConfigNode, lower: ConfigNode) -> ConfigNode:
    """
    Return two values as one: tables key by key, of all else the upper one.

    Tables of different types, such as two providers, are no variants of each other, so that the upper one is the whole.

    Args:
        upper: What counts where both say something.
        lower: What counts else.

    >>> one = tree({"train": {"nodes": 2}}, "project.toml")
    >>> plain(merged(one, tree({"train": {"nodes": 1, "region": "eu"}, "sweep": {}}, "own.toml")))
    {'train': {'nodes': 2, 'region': 'eu'}, 'sweep': {}}
    """
    if not (upper.is_table and lower.is_table) or _differ(upper, lower):
        return upper
    below = lower.value
    above = {key: merged(each, below[key]) if key in below else each for key, each in upper.value.items()}
    return ConfigNode({**above, **{key: each for key, each in below.items() if key not in above}}, upper.file, upper.at)


def _differ(upper: ConfigNode, lower: ConfigNode) -> bool:
    """Return whether two tables say that they are of different types."""
    one, other = upper.get("type"), lower.get("type")
    return one is not None and other is not None and one.value != other.value


def place_of(problem: Problem, texts: Mapping[str, str]) -> KeyPlace:
    """
    Return where a problem is: at its key, or the nearest table around it that is written.

    Args:
        problem: The problem.
        texts: The text of each file.
    """
    if problem.place is not None:
        return problem.place
    places = key_places(texts[problem.file])
    at = problem.at
    while at and at not in places:
        at = at[:-1]
    return places.get(at, KeyPlace(1, 1))


def refusal(problems: list[Problem], texts: Mapping[str, str]) -> ConfigError:
    """
    Return the error that names all problems, each with file, line, column and key.

    Args:
        problems: One at least.
        texts: The text of each file.
    """
    lines = []
    for problem in problems:
        place = place_of(problem, texts)
        key = f"{dotted(problem.at)}: " if problem.at else ""
        lines.append(f"{problem.file}:{place.line}:{place.column}: {key}{problem.message}")
    if len(problems) == 1:
        return problems[0].kind(lines[0], hint=problems[0].hint)
    each = (f"{line} {problem.hint}" if problem.hint else line for line, problem in zip(lines, problems, strict=True))
    return ConfigError("\n  ".join((f"{len(problems)} errors in the configuration:", *each)))
