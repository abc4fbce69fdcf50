"""What others changed in a bucket since it was last copied: a comparison of its listing with what is known of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from skyward.node.volumes.changes import FileState

__all__ = ["Incoming", "ObjectState", "incoming", "objects_of"]


class ObjectState(NamedTuple):
    """
    What distinguishes an object from a later one of its name, as far as a listing says.

    Args:
        size: Its bytes.
        modified: When the store took it, in seconds since 1970.
    """

    size: int
    modified: int

    @classmethod
    def of_copy(cls, file: FileState) -> ObjectState:
        """
        Return the state of the object that a file was copied from, whose time it bears.

        Args:
            file: The file as it was copied.
        """
        return cls(file.size, file.modified // 1_000_000_000)


class Incoming(NamedTuple):
    """
    What is to be done to files on the node.

    Args:
        fetched: Objects that are new or changed.
        removed: Files whose objects are gone.
        compared: Objects that may be what was sent from here or what others made of it since.
        contested: Files that were changed on the node and in the bucket.
    """

    fetched: dict[str, ObjectState]
    removed: list[str]
    compared: dict[str, ObjectState]
    contested: list[str]


def objects_of(lines: Iterable[str]) -> dict[str, ObjectState]:
    """
    Read the listing that `rclone lsjson` writes, an object a line.

    Args:
        lines: The lines.

    >>> objects_of(["[", '{"Path":"a/b","Name":"b","Size":5,"ModTime":"1970-01-01T00:00:07.5Z","IsDir":false},', "]"])
    {'a/b': ObjectState(size=5, modified=7)}
    """
    found = {}
    for line in lines:
        if line.startswith("{"):
            said = json.loads(line.rstrip().rstrip(","))
            modified = datetime.fromisoformat(said["ModTime"]).timestamp()
            found[said["Path"]] = ObjectState(said["Size"], int(modified))
    return found


def incoming(
    known: Mapping[str, ObjectState | None],
    found: Mapping[str, ObjectState],
    files: Mapping[str, FileState],
    changed_here: Collection[str],
) -> Incoming:
    """
    Compare a bucket with what is known of it; files that the node changed are left as they are.

    Args:
        known: Objects as they were last copied; None for those that were sent from here and not listed since.
        found: Objects as they are.
        files: Files as they are.
        changed_here: Files that the node wrote or removed since they were last copied.

    >>> incoming({"a": ObjectState(1, 5), "b": ObjectState(1, 5)}, {"a": ObjectState(1, 9)}, {}, set())
    Incoming(fetched={'a': ObjectState(size=1, modified=9)}, removed=['b'], compared={}, contested=[])
    """
    due = Incoming({}, sorted(known.keys() - found.keys() - set(changed_here)), {}, [])
    for name, state in found.items():
        if name in known and known[name] == state:
            continue
        sent, file = name in known and known[name] is None, files.get(name)
        same_size = file is not None and file.size == state.size
        if name in changed_here:
            if not (sent or same_size):
                due.contested.append(name)
        elif sent and same_size:
            due.compared[name] = state
        else:
            due.fetched[name] = state
    return due
