"""
Exceptions that travel from a node to the client.

`dump_failure` runs on the node, `load_failure` on the client, where the result of the failed call was asked for.
What arrives is the user's own exception with its own chain of causes; the traceback of the node stands at the end of
that chain as a `RemoteTraceback`, so that an uncaught error prints it first.
Each exception of the chain is pickled for itself, with references to the others: one that cannot travel becomes a
`RemoteError` in its place and costs the others nothing.
Everything else about them is plain data, in an `Envelope`.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from skyward.errors import RemoteError
from skyward.link.bare import heavy, reduced
from skyward.link.both import both
from skyward.link.data.maker import Refused
from skyward.link.described import brief, said, shortened, type_name
from skyward.link.envelope import CHAIN_LIMIT, NOTE_LIMIT, Envelope, Record
from skyward.link.remote_traceback import RemoteTraceback

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

_TEXT_LIMIT: Final = 256 * 1024
_MESSAGE_LIMIT: Final = 16 * 1024
_FRAME_LIMIT: Final = 2000

_OWN: Final = tuple(f"{Path(__file__).absolute().parents[1]}{os.sep}{room}{os.sep}" for room in ("link", "node"))


def dump_failure(exc: BaseException, *, data: bool = False) -> bytes:
    """
    Turn an exception and its chain into bytes for the client.

    Args:
        exc: What the user's function raised.
        data: Whether it is opened as data.

    >>> load_failure(dump_failure(KeyError("gone")), note="node 3")
    KeyError('gone')
    """
    text = _printed(exc)
    # The last resort also covers BaseException: a `__reduce__` that exits must not take the worker with it.
    try:
        chain = _chain(exc)
        places = {id(link): place for place, link in enumerate(chain)}
        records = tuple(_record(link, places, raised=link is exc, data=data) for link in chain)
        return Envelope(text, records).encode()
    except BaseException as error:
        reason = f"it could not be described ({brief(error)})"
        record = Record(type_name(type(exc)), "", "", (), None, None, False, None, reason)
        return Envelope(text, (record,)).encode()


def load_failure(data: bytes, *, note: str, trust: Data | None = None) -> BaseException:
    """
    Rebuild the exception that a node sent, ready to be raised.

    Whatever the bytes hold, the answer is an exception: the user's own, or a `RemoteError` that says why not.

    Args:
        data: What `dump_failure` made.
        note: A line about the node and the call, added with `add_note`; none when empty.
        trust: What is opened as data: an exception whose class is not on the list becomes a `RemoteError`. None opens
            anything.
    """
    try:
        text, records = Envelope.decode(data)
        error = _Rebuild(text, records, trust).linked()
        if text:
            _set(_ends(error), "__cause__", RemoteTraceback(text))
    except KeyboardInterrupt:
        raise
    except BaseException as reason:
        error = RemoteError(
            f"A function failed on a node, and what the node sent about it cannot be read ({brief(reason)}).",
            hint="Look for the error in the output of the node.",
        )
    if note:
        _set(error, "__notes__", [*_notes(error), note])
    return error


def raise_failure(error: BaseException) -> NoReturn:
    """
    Raise a rebuilt exception and keep its chain.

    A plain `raise` inside an `except` block replaces `__context__`, and the chain of the node would be lost.
    What is being handled is put behind the end of the chain instead.

    Args:
        error: What `load_failure` returned.

    Raises:
        BaseException: The error.
    """
    context = error.__context__
    try:
        raise error
    finally:
        handled = error.__context__
        if handled is not context:
            _set(error, "__context__", context)
            if handled is not None and not any(link is handled for link in _printed_chain(error)):
                _set(_ends(error), "__context__", handled)


# On the node ----------------------------------------------------------------------------------------------------------


def _chain(exc: BaseException) -> list[BaseException]:
    """
    List the exceptions that travel, the raised one first, causes before members of groups.
    """
    found: list[BaseException] = []
    seen: set[int] = set()
    waiting = deque([exc])
    while waiting and len(found) < CHAIN_LIMIT:
        link = waiting.popleft()
        if id(link) in seen:
            continue
        seen.add(id(link))
        found.append(link)
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(link.exceptions)
        waiting.extendleft(other for other in (link.__context__, link.__cause__) if other is not None)
    return found


def _record(exc: BaseException, places: dict[int, int], *, raised: bool, data: bool) -> Record:
    # Raised again on the client, SystemExit and its like would end the client instead of telling about the node.
    did = "" if not raised or isinstance(exc, Exception) else _deed(exc)
    pickled, reason = (None, "") if did else _pickled(exc, places, data=data)
    return Record(
        type_name=type_name(type(exc)),
        message=shortened(said(exc, str), _MESSAGE_LIMIT),
        did=did,
        notes=tuple(shortened(said(note, str), _MESSAGE_LIMIT) for note in _notes(exc)[:NOTE_LIMIT]),
        cause=places.get(id(exc.__cause__)),
        context=places.get(id(exc.__context__)),
        suppress_context=exc.__suppress_context__,
        pickled=pickled,
        reason=reason,
    )


def _deed(exc: BaseException) -> str:
    if isinstance(exc, SystemExit):
        return f"called sys.exit({'' if exc.code is None else shortened(said(exc.code, repr), 200)})"
    text = shortened(said(exc, str), _MESSAGE_LIMIT)
    return f"raised {type_name(type(exc))}{f': {text}' if text else ''}"


def _pickled(exc: BaseException, places: dict[int, int], *, data: bool) -> tuple[bytes | None, str]:
    """
    Pickle one exception of the chain, or say why that is impossible.
    """
    pickler = _pickler_class(data=data)
    sink = io.BytesIO()
    try:
        pickler(sink, exc, places).dump(exc)
        return sink.getvalue(), ""
    except BaseException as error:  # broad, because a user's `__reduce__` may raise anything, an exit too
        reason = f"it cannot be pickled ({brief(error)})"
    try:
        # The exception without the attributes at fault is worth more than a replacement.
        left_out = [] if data else heavy(exc, lambda sink: pickler(sink, exc, places))
        if not left_out:
            return None, reason
        sink = io.BytesIO()
        pickler(sink, exc, places, left_out).dump(exc)
        return sink.getvalue(), ""
    except BaseException:  # as above
        return None, reason


@functools.cache
def _pickler_class(*, data: bool) -> Callable[..., Any]:
    import cloudpickle

    from skyward.link.data.reducing import reduce_as_data

    class ChainPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        """
        Pickle one exception, with the others of its chain as references.
        """

        def __init__(
            self, sink: io.BytesIO, exc: BaseException, places: dict[int, int], left_out: Collection[str] = ()
        ) -> None:
            super().__init__(sink, protocol=pickle.HIGHEST_PROTOCOL)
            self._exc = exc
            self._places = places
            self._left_out = left_out

        def persistent_id(self, obj: object) -> int | None:
            if isinstance(obj, BaseException) and obj is not self._exc:
                return self._places.get(id(obj))
            return None

        def reducer_override(self, obj: Any) -> Any:
            if data:
                return reduce_as_data(obj) or super().reducer_override(obj)
            made = reduced(obj, self._left_out) if obj is self._exc else None
            return made or super().reducer_override(obj)

    return ChainPickler


def _printed(exc: BaseException) -> str:
    """
    Print the whole chain as Python would, without our own frames.
    """
    try:
        whole = traceback.TracebackException(
            type(exc), exc, exc.__traceback__, limit=-_FRAME_LIMIT, max_group_width=50, compact=True
        )
        for part in _parts(whole):
            kept = [frame for frame in part.stack if not frame.filename.startswith(_OWN)]
            # An error in our own code alone would be left without a single frame.
            if kept:
                part.stack[:] = kept
        text = "".join(whole.format())
    except BaseException as error:
        text = f"{type_name(type(exc))}: {said(exc, str)}\n(its traceback cannot be printed: {brief(error)})\n"
    return shortened(text, _TEXT_LIMIT)


def _parts(whole: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    waiting = [whole]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += [other for other in (part.__cause__, part.__context__, *(part.exceptions or ())) if other]


# On the client --------------------------------------------------------------------------------------------------------


class _Rebuild:
    """
    Rebuild the exceptions of a chain, each once, in whatever order they refer to each other.
    """

    def __init__(self, text: str, records: tuple[Record, ...], trust: Data | None) -> None:
        self._text = text
        self._trust = trust
        self._records = records
        self._built: dict[int, BaseException] = {}
        self._underway: set[int] = set()

    def linked(self) -> BaseException:
        """
        Return the first exception, linked with all others as on the node.
        """
        for place, record in enumerate(self._records):
            exc = self.at(place)
            if record.cause is not None:
                _set(exc, "__cause__", self.at(record.cause))
            if record.context is not None:
                _set(exc, "__context__", self.at(record.context))
            _set(exc, "__suppress_context__", bool(record.suppress_context))
            if record.notes and not _notes(exc):
                _set(exc, "__notes__", list(record.notes))
        return self.at(0)

    def at(self, place: int) -> BaseException:
        """
        Return the exception at a place of the chain.
        """
        if place in self._built:
            return self._built[place]
        if place in self._underway:
            raise pickle.UnpicklingError("two exceptions hold each other")
        record = self._records[place]
        self._underway.add(place)
        try:
            exc: BaseException = self._unpickled(record) if record.pickled is not None else self._stood_in(record)
        except KeyboardInterrupt:
            raise
        except Refused as refused:
            exc = self._stood_in(record, f"{refused.name} is not opened as data unless it is listed: {refused.listing}")
        except BaseException as error:
            exc = self._stood_in(record, f"it cannot be unpickled here ({brief(error)})")
        finally:
            self._underway.discard(place)
        self._built[place] = exc
        return exc

    def _unpickled(self, record: Record) -> BaseException:
        from skyward.link.data.allowed_names import names_of
        from skyward.link.data.opener import open_data

        assert record.pickled is not None
        if self._trust is not None:
            exc = open_data(record.pickled, names_of(self._trust), chained=self.at)
        else:
            unpickler = _ChainUnpickler(io.BytesIO(record.pickled))
            unpickler.chain = self
            exc = unpickler.load()
        if not isinstance(exc, BaseException) or type_name(type(exc)) != record.type_name:
            raise pickle.UnpicklingError(f"its pickle made a {type_name(type(exc))}")
        return exc

    def _stood_in(self, record: Record, reason: str = "") -> RemoteError:
        if record.did:
            message, hint = f"The function {record.did}.", "Return a value or raise an Exception to end a task."
        else:
            message = f"{record.type_name}: {record.message}" if record.message else record.type_name
            hint = f"(The exception did not travel as itself: {reason or record.reason}.)"
        error = RemoteError(message, type_name=record.type_name, traceback=self._text, hint=hint)
        # Of a node that is trusted with data only, no class of this program is taken.
        return error if record.did or self._trust is not None else both(error, record.message or record.type_name)


class _ChainUnpickler(pickle.Unpickler):
    """
    Unpickle one exception; references to others of its chain are looked up there.
    """

    chain: _Rebuild

    def persistent_load(self, place: Any, /) -> BaseException:
        return self.chain.at(place)


def _printed_chain(error: BaseException) -> Iterator[BaseException]:
    """
    Walk from an error to its last cause as Python prints it, each exception once.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _ends(error: BaseException) -> BaseException:
    """
    Return the exception at the end of a chain.
    """
    *_, last = _printed_chain(error)
    return last


# On both sides --------------------------------------------------------------------------------------------------------


def _set(exc: BaseException, name: str, value: object) -> None:
    # Exceptions may forbid assignment (frozen data classes); the interpreter itself links them all the same.
    BaseException.__setattr__(exc, name, value)


def _notes(exc: BaseException) -> list[Any]:
    try:
        return list(getattr(exc, "__notes__", ()))
    except Exception:
        return []
