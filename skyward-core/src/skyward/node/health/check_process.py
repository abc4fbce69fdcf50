"""
The process on a node that runs the user's health check, and nothing else.

    python -m skyward.node.health.check_process

The first line of its input is JSON: the directory of the user's modules, and the pickle of the predicate.
Each further line asks for one check. What it writes are lines of JSON: `{"ready": true}` once, then for each check
`{"ok": true}` or `{"ok": false, "why": text}`, or `{"mistake": text}`, after which it ends.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from typing import Any

from skyward.node.agent.entry import die_with_parent

_LONGEST = 500


def main() -> None:
    """Load the predicate, and call it whenever that is asked for."""
    die_with_parent()
    # What the user's code prints or reads goes elsewhere.
    asked, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    setting = json.loads(asked.readline())
    os.chdir(setting["directory"])
    sys.path.insert(0, setting["directory"])

    def tell(**said: Any) -> None:
        answers.write(f"{json.dumps(said)}\n")
        answers.flush()

    try:
        predicate = pickle.loads(base64.b64decode(setting["predicate"]))
    except BaseException as error:
        tell(mistake=f"it cannot be loaded on the node: {_named(error)}")
        return
    tell(ready=True)
    for _ in asked:
        said = verdict(predicate)
        tell(**said)
        if "mistake" in said:
            return


def verdict(predicate: Any) -> dict[str, Any]:
    """
    Return what one check says.

    Args:
        predicate: The user's function.

    >>> verdict(lambda: True), verdict(lambda: False)
    ({'ok': True}, {'ok': False, 'why': 'it returned False'})
    >>> verdict(lambda: None)
    {'mistake': 'it returned None, which is neither True nor False'}
    """
    try:
        found = predicate()
    except BaseException as error:
        # Also SystemExit: a check that leaves has not said that the node is well.
        return {"ok": False, "why": f"it raised {_named(error)}"}
    # A bool of NumPy's is one, too.
    if type(found).__module__ == "numpy" and type(found).__name__ in ("bool", "bool_"):
        found = bool(found)
    if not isinstance(found, bool):
        return {"mistake": f"it returned {repr(found)[:100]}, which is neither True nor False"}
    return {"ok": True} if found else {"ok": False, "why": "it returned False"}


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


if __name__ == "__main__":
    main()
