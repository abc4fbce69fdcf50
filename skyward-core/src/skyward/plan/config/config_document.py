"""
All configuration files of a program as one document: their layers, and the tables that others extend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from attrs import frozen

from skyward.model.fields.setting import nearest
from skyward.plan.config.config_tree import ConfigNode, Problem, merged, tree
from skyward.plan.config.key_places import dotted

__all__ = ["NAMED", "TOP", "Config", "Layer", "config_of"]

NAMED = ("providers", "images", "plugins", "metrics", "pools")
"""Tables of tables with names, each of which may extend another one."""

TOP = (*NAMED, "options", "extends")
"""All that a file may have at its top."""

_TYPED = ("providers", "plugins", "metrics")


@frozen
class Layer:
    """
    Hold one file that was read.

    Args:
        file: The file.
        text: What is in it.
        document: The same, as TOML was read.
    """

    file: str
    text: str
    document: Mapping[str, Any]


@frozen
class Config:
    """
    Hold what all files say together.

    Args:
        root: The document, whose values know their files.
        texts: The text of each file, in the order in which they count.
        problems: What is wrong with it as a whole.
    """

    root: ConfigNode
    texts: Mapping[str, str]
    problems: tuple[Problem, ...] = ()

    @property
    def pools(self) -> Mapping[str, ConfigNode]:
        """Return the tables of pools by name."""
        return self.tables("pools")

    def tables(self, kind: str) -> Mapping[str, ConfigNode]:
        """Return the tables of one kind by name."""
        shelf = self.root.get(kind)
        return shelf.value if shelf is not None and shelf.is_table else {}


def config_of(layers: Sequence[Layer]) -> Config:
    """
    Return what files say together.

    Args:
        layers: The files, first the one that counts most.

    >>> import tomllib
    >>> texts = {"project.toml": "[pools.train]\\nextends = 'base'", "own.toml": "[pools.base]\\nnodes = 2"}
    >>> config = config_of([Layer(file, text, tomllib.loads(text)) for file, text in texts.items()])
    >>> config.pools["train"].get("nodes")
    ConfigNode(value=2, file='own.toml', at=('pools', 'base', 'nodes'))
    """
    problems: list[Problem] = []
    trees = [_checked(tree(layer.document, layer.file), problems) for layer in layers]
    root = reduce(merged, trees)
    shelves = {kind: _extended(kind, shelf, problems) for kind in NAMED if (shelf := root.get(kind)) is not None}
    root = ConfigNode({**root.without("extends").value, **shelves}, root.file)
    return Config(root, {layer.file: layer.text for layer in layers}, tuple(problems))


def _checked(root: ConfigNode, problems: list[Problem]) -> ConfigNode:
    """Return a document without what has no place in it, each of which is a problem."""
    kept = {}
    for key, node in root.value.items():
        if key not in TOP:
            close = nearest(key, TOP)
            hint = f"Did you mean {close!r}?" if close else f"There may be {', '.join(TOP)}."
            problems.append(Problem(node.file, node.at, f"A configuration file has no {key!r}.", hint))
        elif key == "extends":
            # The reader of files has followed it.
            kept[key] = node
        elif not node.is_table:
            hint = f"Write [{key}.NAME]." if key in NAMED else f"Write [{key}]."
            problems.append(Problem(node.file, node.at, f"{key} must be a table.", hint))
        else:
            kept[key] = ConfigNode(
                dict(_tables(key, node, problems)) if key in NAMED else node.value, node.file, node.at
            )
    return ConfigNode(kept, root.file)


def _tables(kind: str, shelf: ConfigNode, problems: list[Problem]) -> Any:
    for name, node in shelf.value.items():
        if node.is_table:
            yield name, node
        else:
            message = f"{kind}.{name} must be a table, not {type(node.value).__name__}."
            problems.append(Problem(node.file, node.at, message, f"Write [{dotted((kind, name))}]."))


def _extended(kind: str, shelf: ConfigNode, problems: list[Problem]) -> ConfigNode:
    """Return the tables of one kind, each with what it extends below it."""
    done: dict[str, ConfigNode] = {}

    def whole(name: str, chain: tuple[str, ...]) -> ConfigNode:
        if name in done:
            return done[name]
        node: ConfigNode = shelf.value[name]
        base = node.get("extends")
        if base is None:
            if kind in _TYPED and "type" not in node.value:
                # [providers.AWS] says more of the provider that is called so.
                node = ConfigNode({"type": ConfigNode(name, node.file, node.at), **node.value}, node.file, node.at)
        elif (wrong := _wrong(kind, base, shelf, chain)) is not None:
            problems.append(wrong)
            node = node.without("extends")
        else:
            node = merged(node.without("extends"), whole(base.value, (*chain, base.value)))
        done[name] = node
        return node

    return ConfigNode({name: whole(name, (name,)) for name in shelf.value}, shelf.file, shelf.at)


def _wrong(kind: str, base: ConfigNode, shelf: ConfigNode, chain: tuple[str, ...]) -> Problem | None:
    """Return what is wrong with the name of a table that is extended."""
    name = base.value
    if not isinstance(name, str):
        return Problem(base.file, base.at, f"extends must be the name of one of the {kind}, not {name!r}.")
    if name in chain:
        circle = " extends ".join((*chain, name))
        return Problem(base.file, base.at, f"The {kind} extend each other in a circle: {circle}.", "Leave one out.")
    if name not in shelf.value:
        close = nearest(name, shelf.value)
        hint = f"Did you mean {close!r}?" if close else f"There are {', '.join(shelf.value)}."
        return Problem(base.file, base.at, f"There is no [{dotted((kind, name))}] to extend.", hint)
    return None
