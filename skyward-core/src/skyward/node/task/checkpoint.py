"""
`Checkpoint`: what a call saved, found again by its next attempt wherever that runs.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from skyward.errors import CheckpointError, RefError, SkywardError, UsageError
from skyward.link.keeping import ADDRESS
from skyward.link.messages import task_of

if TYPE_CHECKING:
    from skyward.node.task.checkpoint_places import CheckpointPlace, VersionName
    from skyward.node.task.task_context import TaskContext

__all__ = ["Checkpoint", "address_of_call", "address_of_key"]

_ROOM: Final = "Make room there, keep fewer versions with keep=, or save to another place with to=."


class Checkpoint:
    """
    Versions of one object: what `sky.checkpoint` returns.

    Args:
        address: What it is called at its place.
        place: Where it is kept.
        keep: How many versions are kept.
    """

    __slots__ = ("_keep", "_place", "address")

    def __init__(self, address: str, place: CheckpointPlace, keep: int) -> None:
        self.address = address
        self._place = place
        self._keep = keep

    def load(self, default: Any = None) -> Any:
        """
        Return what was saved last.

        A version that is damaged is passed over with a warning, in favour of the one before it.
        Large arrays and tensors are writable; tensors are in the host's memory, wherever they were.

        Args:
            default: What is returned where nothing was saved.

        Raises:
            CheckpointError: If there are versions and none can be read, or what was saved cannot be unpickled here.
        """
        from skyward.node.data.checkpoint_file import BrokenVersionError, read_version

        found = self._versions()
        broken: list[str] = []
        for version in reversed(found):
            try:
                with self._place.opened(self.address, version) as file:
                    value = self._unpickled(read_version, file, version)
            except FileNotFoundError:
                # Another call saved, and this one made room.
                continue
            except BrokenVersionError as error:
                broken.append(f"version {version.number}: {error}")
                continue
            except SkywardError:
                raise
            except Exception as error:
                raise self._failed("loaded", error) from error
            if broken:
                warnings.warn(
                    f"The checkpoint {self.address} is damaged ({'; '.join(broken)}), and version {version.number} "
                    "was loaded in its place.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return value
        if broken:
            raise CheckpointError(
                f"The checkpoint {self.address} in {self._place} is damaged: {'; '.join(broken)}.",
                address=self.address,
                hint="Call delete() to begin from the start.",
            )
        return default

    def save(self, obj: Any) -> int:
        """
        Keep an object as the newest version, and return the version's number once it is durable.

        It is written from where it is, and must not change meanwhile. Those versions that are too many are removed.

        Args:
            obj: Anything that can be pickled; tensors of accelerators are copied to the host's memory.

        Raises:
            CheckpointError: If it cannot be kept, such as on a full disk; earlier versions are as they were.
            SerializationError: If it cannot be pickled.
        """
        from skyward.node.data.checkpoint_file import Pieces, write_version

        failures: list[BaseException] = []

        def writes(write: Any) -> None:
            def watched(pieces: Pieces) -> None:
                try:
                    write(pieces)
                except BaseException as error:
                    failures.append(error)
                    raise

            try:
                write_version(obj, watched)
            except RefError:
                raise
            except Exception as error:
                if any(error is one for one in failures):
                    raise
                from skyward.link.blame import blame

                raise blame(error, function="save", arguments={"obj": obj}) from error

        try:
            return self._place.save(self.address, writes, self._keep)
        except SkywardError:
            raise
        except Exception as error:
            raise self._failed("saved", error) from error

    def versions(self) -> list[int]:
        """
        List the numbers of the versions that are kept, oldest first.

        Raises:
            CheckpointError: If its place cannot be read.
        """
        return [version.number for version in self._versions()]

    def delete(self) -> None:
        """
        Remove all versions, as at the end of a call that needs them no more.

        Raises:
            CheckpointError: If they cannot be removed.
        """
        with self._reported("deleted"):
            self._place.delete(self.address)

    def __repr__(self) -> str:
        return f"<checkpoint {self.address} in {self._place}>"

    def _versions(self) -> list[VersionName]:
        with self._reported("listed"):
            return self._place.versions(self.address)

    def _unpickled(self, read: Any, file: Any, version: VersionName) -> Any:
        from skyward.node.data.checkpoint_file import BrokenVersionError

        try:
            return read(file)
        except (OSError, BrokenVersionError):
            raise
        except Exception as error:
            raise CheckpointError(
                f"Version {version.number} of the checkpoint {self.address} is whole, and cannot be unpickled here: "
                f"{type(error).__name__}: {error}.",
                address=self.address,
                hint="Install the package that its class comes from, or call delete() to begin from the start.",
            ) from error

    @contextlib.contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        try:
            yield
        except SkywardError:
            raise
        except Exception as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: Exception) -> CheckpointError:
        number = error.errno if isinstance(error, OSError) else None
        why = (error.strerror if isinstance(error, OSError) else None) or f"{type(error).__name__}: {error}"
        return CheckpointError(
            f"The checkpoint {self.address} could not be {what} in {self._place}: {why.rstrip('.')}. "
            "Earlier versions are as they were.",
            address=self.address,
            errno=number,
            hint=_ROOM if what == "saved" else None,
        )


def address_of_call(context: TaskContext, name: str) -> str:
    """
    Name what a call saves: the same for all its attempts, and of a broadcast for the same rank.

    Args:
        context: The call's.
        name: Which of its checkpoints.

    Raises:
        UsageError: If the name cannot be one.

    >>> from skyward.node.task.task_context import TaskContext
    >>> address_of_call(TaskContext(call_id=7 | 2 << 48, facts={}, membership={"job_id": "a1"}), "model")
    'call-a1-7_model'
    >>> members = {"job_id": "a1", "broadcast": 9 | 1 << 48, "node": 2}
    >>> address_of_call(TaskContext(call_id=12, facts={}, membership=members), "")
    'call-a1-9.2'
    """
    info = context.info()
    broadcast = int(context.membership.get("broadcast") or 0)
    call = f"{task_of(broadcast)}.{info.global_worker_index}" if broadcast else str(task_of(context.call_id))
    return f"call-{info.job_id or 'pool'}-{call}" + (f"_{_checked(name, 'name')}" if name else "")


def address_of_key(key: str) -> str:
    """
    Name what is saved under a key of the user's.

    Args:
        key: The key.

    Raises:
        UsageError: If it cannot be one.

    >>> address_of_key("run-7")
    'key-run-7'
    >>> address_of_key("../run")
    Traceback (most recent call last):
        ...
    skyward.errors.UsageError: key='../run' is no name for a checkpoint. Take letters, digits, '-', '_' and '.', ...
    """
    return f"key-{_checked(key, 'key')}"


_LONGEST: Final = 100


def _checked(name: Any, parameter: str) -> str:
    if not isinstance(name, str) or not ADDRESS.fullmatch(name) or len(name) > _LONGEST:
        raise UsageError(
            f"{parameter}={name!r} is no name for a checkpoint.",
            hint=f"Take letters, digits, '-', '_' and '.', at most {_LONGEST} of them, a letter or digit first.",
        )
    return name
