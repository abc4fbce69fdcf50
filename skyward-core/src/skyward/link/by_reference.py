"""Whether functions and classes travel as their names, and not as what they are made of."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["by_reference", "pickled_by_value"]


def by_reference(obj: Any) -> bool:
    """
    Return whether a function or class is pickled as the name of a module and an attribute of it.

    Args:
        obj: A function or a class.

    >>> by_reference(by_reference), by_reference(lambda: 1)
    (True, False)
    """
    module_name, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if not isinstance(module_name, str) or not isinstance(name, str):
        return False
    if module_name == "builtins" and isinstance(obj, type):
        return True
    module = sys.modules.get(module_name)
    if module is None or module_name == "__main__" or "<locals>" in name or pickled_by_value(module_name):
        return False
    found: Any = module
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except Exception:
        return False
    return found is obj


def pickled_by_value(module_name: str) -> bool:
    """
    Return whether the user asked cloudpickle to send a module's contents by value.

    Args:
        module_name: The module's full name.

    >>> pickled_by_value("json")
    False
    """
    cloudpickle = sys.modules.get("cloudpickle")
    if cloudpickle is None:
        return False
    names = cloudpickle.list_registry_pickle_by_value()
    return bool(names) and any(module_name == name or module_name.startswith(f"{name}.") for name in names)
