"""A cloud's own description of its API, where it is present: what is asked and answered has to be as it says."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "SKYWARD_OPENAPI"
"""Names the folder of such descriptions; without it they are looked for beside the repository."""

_NAME = "urn:described"


def found(name: str) -> Path | None:
    """Return where a description is, such as `"runpod-v2.json"`; None if it is nowhere."""
    folder = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "reference" / "openapi")
    path = folder / name
    return path if path.exists() else None


class Contract:
    """
    Hold questions and answers against a description.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self._document = _with_nulls(json.loads(path.read_text(encoding="utf-8")))
        registry: Registry[Any] = Registry()
        resource = Resource(contents=self._document, specification=DRAFT202012)
        self._registry = registry.with_resource(_NAME, resource)
        patterns = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in self._document["paths"]}
        # `/v2/pods/{id}` must not win over a path of its own.
        self._patterns = dict(sorted(patterns.items(), key=lambda item: item[0].count("{")))

    def request_faults(self, method: str, path: str, query: dict[str, str], body: Any) -> list[str]:
        """Say what is wrong with a request; nothing if it is as described."""
        where = self._operation(path, method)
        if where is None:
            return [f"{method} {path} is not in the contract"]
        operation, shared = self._at(where), self._at(where[:2]).get("parameters", ())
        known = {self._resolved(row)["name"] for row in (*shared, *operation.get("parameters", ()))}
        faults = [f"there is no parameter {name}" for name in query if name not in known]
        if "requestBody" in operation:
            faults += self._faults((*where, "requestBody"), body)
        elif body is not None:
            faults.append(f"{method} {path} takes no body")
        return faults

    def answer_faults(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """Say what is wrong with an answer; nothing if it is as described."""
        where = self._operation(path, method)
        if where is None:
            return []
        responses = self._at(where)["responses"]
        code = str(status) if str(status) in responses else "default"
        if code not in responses:
            return []
        if "content" not in self._resolved(responses[code]):
            return [f"{method} {path} answers {status} without a body"] if body is not None else []
        return self._faults((*where, "responses", code), body)

    def _operation(self, path: str, method: str) -> tuple[str, ...] | None:
        described = next((name for name, pattern in self._patterns.items() if pattern.fullmatch(path)), None)
        known = described is not None and method.lower() in self._document["paths"][described]
        return ("paths", described, method.lower()) if known and described is not None else None

    def _at(self, steps: tuple[str, ...]) -> Any:
        node = self._document
        for step in steps:
            node = node[step]
        return node

    def _resolved(self, node: Any) -> Any:
        while "$ref" in node:
            node = self._at(_steps(node["$ref"]))
        return node

    def _faults(self, where: tuple[str, ...], value: Any) -> list[str]:
        """Hold a value against the schema of a body that is described at a place, or is referred to from there."""
        while "$ref" in (node := self._at(where)):
            where = _steps(node["$ref"])
        kinds = node["content"]
        kind = next((each for each in kinds if "json" in each), None)
        if kind is None:
            return []
        pointer = "/".join(
            step.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
            for step in (*where, "content", kind, "schema")
        )
        validator = jsonschema.Draft202012Validator({"$ref": f"{_NAME}#/{pointer}"}, registry=self._registry)
        return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]


@cache
def contract(name: str) -> Contract | None:
    """Return a contract; None where it is not present."""
    path = found(name)
    return Contract(path) if path is not None else None


def _steps(reference: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in reference.removeprefix("#/").split("/"))


def _with_nulls(node: Any) -> Any:
    """Write what may be null as JSON Schema does; older descriptions have a word of their own for it."""
    if isinstance(node, list):
        return [_with_nulls(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _with_nulls(value) for name, value in node.items()}
    if plain.pop("nullable", None) is not True or "type" not in plain:
        return plain
    if "enum" in plain:
        plain["enum"] = [*plain["enum"], None]
    return {**plain, "type": [plain["type"], "null"]}
