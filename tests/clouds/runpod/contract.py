"""RunPod's own description of its API, where it is present: what is asked and answered has to be as it says."""

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

ROOT = Path(__file__).resolve().parents[3]
VARIABLE = "SKYWARD_OPENAPI"
"""Names the folder of such descriptions; without it they are looked for beside the repository."""

_NAME = "urn:runpod"


def found() -> Path | None:
    """Return where the description is; None if it is nowhere."""
    folder = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "reference" / "openapi")
    path = folder / "runpod-v2.json"
    return path if path.exists() else None


class Contract:
    """
    Hold questions and answers against the description.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self._document = json.loads(path.read_text(encoding="utf-8"))
        registry: Registry[Any] = Registry()
        resource = Resource(contents=self._document, specification=DRAFT202012)
        self._registry = registry.with_resource(_NAME, resource)
        patterns = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in self._document["paths"]}
        # `/v2/pods/{id}` must not win over a path of its own.
        self._patterns = dict(sorted(patterns.items(), key=lambda item: item[0].count("{")))

    def request_faults(self, method: str, path: str, query: dict[str, str], body: Any) -> list[str]:
        """Say what is wrong with a request; nothing if it is as described."""
        described = self._path(path)
        if described is None or method.lower() not in self._document["paths"][described]:
            return [f"{method} {path} is not in the contract"]
        operation = self._document["paths"][described][method.lower()]
        known = {}
        for parameter in operation.get("parameters", ()):
            row = parameter
            if "$ref" in row:
                row = self._document["components"]["parameters"][row["$ref"].rpartition("/")[2]]
            known[row["name"]] = row
        faults = [f"there is no parameter {name}" for name in query if name not in known]
        if "requestBody" in operation:
            faults += self._faults(described, method, ("requestBody", "content", "application/json", "schema"), body)
        elif body is not None:
            faults.append(f"{method} {path} takes no body")
        return faults

    def answer_faults(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """Say what is wrong with an answer; nothing if it is as described."""
        described = self._path(path)
        if described is None:
            return []
        responses = self._document["paths"][described][method.lower()]["responses"]
        response = responses.get(str(status)) or responses.get("default", {})
        if "$ref" in response:
            response = self._document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        if "content" not in response:
            return [f"{method} {path} answers {status} without a body"] if body is not None else []
        if status >= 400:
            return self._held({"$ref": f"{_NAME}#/components/schemas/ErrorResponse"}, body)
        where = ("responses", str(status), "content", "application/json", "schema")
        return self._faults(described, method, where, body)

    def _path(self, path: str) -> str | None:
        return next((name for name, pattern in self._patterns.items() if pattern.fullmatch(path)), None)

    def _faults(self, path: str, method: str, where: tuple[str, ...], value: Any) -> list[str]:
        steps = ("paths", path, method.lower(), *where)
        pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in steps)
        return self._held({"$ref": f"{_NAME}#/{pointer.replace('{', '%7B').replace('}', '%7D')}"}, value)

    def _held(self, schema: dict[str, Any], value: Any) -> list[str]:
        validator = jsonschema.Draft202012Validator(schema, registry=self._registry)
        return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]


@cache
def contract() -> Contract | None:
    """Return the contract; None where it is not present."""
    path = found()
    return Contract(path) if path is not None else None
