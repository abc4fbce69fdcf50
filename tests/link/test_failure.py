import asyncio
import pickle
import subprocess
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyward.errors import NodeLostError, RemoteError
from skyward.link import failure
from skyward.link.failure import RemoteTraceback, dump_failure, load_failure, raise_failure


class Holder(Exception):
    def __init__(self, message, other=None):
        super().__init__(message)
        self.other = other

    def __reduce__(self):
        return (Holder, (self.args[0], self.other))


class Liar(Exception):
    def __reduce__(self):
        return (dict, ())


class Impostor(Exception):
    def __reduce__(self):
        return (KeyError, ("x",))


class Exiting(Exception):
    def __reduce__(self):
        sys.exit(1)


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


@dataclass(frozen=True)
class Frozen(Exception):
    code: int

    def __reduce__(self):
        return (Frozen, (self.code,))


class Group(ExceptionGroup):
    def derive(self, excs):
        return Group(self.message, excs)


def caught(run):
    try:
        run()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def travelled(run, note="raised by f() on node 1", **options):
    return load_failure(dump_failure(caught(run), **options), note=note)


def chain_of(error):
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def boom(error):
    raise error


def explicit():
    try:
        boom(ValueError("inner"))
    except ValueError as error:
        raise KeyError("outer") from error


def implicit():
    try:
        boom(ValueError("inner"))
    except ValueError:
        raise KeyError("outer")  # noqa: B904


def hidden():
    try:
        boom(ValueError("inner"))
    except ValueError:
        raise KeyError("outer") from None


class TestTheUsersOwn:
    def test_type_and_arguments_are_kept(self):
        """
        An exception comes back as its own type with its own arguments.
        """
        error = travelled(lambda: {}["gone"])
        assert type(error) is KeyError
        assert error.args == ("gone",)

    def test_attributes_are_kept(self):
        """
        What was set on an exception travels with it.
        """
        error = OSError(2, "No such file", "x.txt")
        error.extra = [1, 2]
        back = travelled(lambda: boom(error))
        assert type(back) is FileNotFoundError
        assert (back.errno, back.filename, back.extra) == (2, "x.txt", [1, 2])

    def test_our_own_errors_travel(self):
        """
        Errors of Skyward that arise on a node keep their facts.
        """
        back = travelled(lambda: boom(NodeLostError("gone", node=3)))
        assert type(back) is NodeLostError
        assert back.node == 3

    def test_explicit_cause_is_rebuilt(self):
        """
        `raise ... from` is the same here as on the node.
        """
        error = travelled(explicit)
        assert [type(link) for link in chain_of(error)] == [KeyError, ValueError, RemoteTraceback]
        assert isinstance(error.__cause__, ValueError)
        assert error.__context__ is error.__cause__
        assert error.__suppress_context__ is True

    def test_implicit_context_is_rebuilt(self):
        """
        An exception raised while another was handled keeps it as its context, not as its cause.
        """
        error = travelled(implicit)
        assert error.__cause__ is None
        assert isinstance(error.__context__, ValueError)
        assert error.__suppress_context__ is False
        assert isinstance(error.__context__.__cause__, RemoteTraceback)

    def test_suppressed_context_stays_suppressed(self):
        """
        After `from None` the traceback of the node follows the error itself, and the context is there unprinted.
        """
        error = travelled(hidden)
        assert [type(link) for link in chain_of(error)] == [KeyError, RemoteTraceback]
        assert isinstance(error.__context__, ValueError)
        assert "inner" not in "".join(traceback.format_exception(error))

    def test_notes_are_kept_and_ours_is_last(self):
        """
        The user's notes come first, the note about node and call is the last.
        """
        error = ValueError("x")
        error.add_note("mine")
        assert travelled(lambda: boom(error)).__notes__ == ["mine", "raised by f() on node 1"]

    def test_groups_keep_members_and_their_causes(self):
        """
        Members of a group come back as themselves, each with its own chain.
        """
        error = travelled(lambda: boom(Group("both", [caught(explicit), KeyError("b")])))
        assert type(error) is Group
        assert [type(member) for member in error.exceptions] == [KeyError, KeyError]
        assert str(error.exceptions[0].__cause__) == "inner"

    def test_one_exception_in_two_places_stays_one(self):
        """
        An exception that is the cause of another and an attribute of it is one object here too.
        """

        def run():
            inner = ValueError("inner")
            raise Holder("outer", inner) from inner

        error = travelled(run)
        assert error.other is error.__cause__

    def test_exception_that_forbids_assignment_is_linked(self):
        """
        A frozen data class is linked with causes and notes like any other exception.
        """
        error = travelled(lambda: boom(Frozen(3)))
        assert error == Frozen(3)
        assert isinstance(error.__cause__, RemoteTraceback)
        assert error.__notes__ == ["raised by f() on node 1"]

    def test_class_of_a_script_is_the_same_class_here(self):
        """
        An exception class from `__main__` that went to the node by value is caught by its name here.
        """
        script = (
            "import cloudpickle, pickle, subprocess, sys\n"
            "from skyward.link.failure import load_failure\n"
            "class Mine(Exception): pass\n"
            "def run(): raise Mine(7)\n"
            "node = 'import sys, pickle\\n'\\\n"
            "  'from skyward.link.failure import dump_failure\\n'\\\n"
            "  'try: pickle.loads(sys.stdin.buffer.read())()\\n'\\\n"
            "  'except Exception as error: sys.stdout.buffer.write(dump_failure(error))'\n"
            "sent = subprocess.run([sys.executable, '-c', node], input=cloudpickle.dumps(run), capture_output=True)\n"
            "try: raise load_failure(sent.stdout, note='n')\n"
            "except Mine as error: print('caught', error.args)\n"
        )
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert run.stdout == "caught (7,)\n"


class TestTheTraceback:
    def test_text_ends_the_chain(self):
        """
        The traceback of the node is the last cause, as the text that the node printed.
        """
        end = chain_of(travelled(explicit))[-1]
        assert isinstance(end, RemoteTraceback)
        assert "in explicit" in str(end)
        assert "KeyError: 'outer'" in end.text
        assert "direct cause" in end.text

    def test_uncaught_error_prints_it_and_the_note(self):
        """
        What Python prints for an uncaught error holds the frames of the node and the note.
        """
        text = "".join(traceback.format_exception(travelled(explicit)))
        assert "in explicit" in text
        assert text.rstrip().endswith("raised by f() on node 1")

    def test_own_files_are_left_out(self):
        """
        Frames of our own do not appear, those of the user do.
        """
        space = {}
        own = str(Path(failure.__file__).parents[1] / "node" / "launcher.py")
        for name in ("/node/launcher.py", own):
            exec(compile("def inside(run):\n    run()\n", name, "exec"), space)
            text = chain_of(travelled(lambda: space["inside"](explicit)))[-1].text
            assert ("launcher" in text) == (name != own)
            assert "in explicit" in text

    def test_frames_are_kept_when_all_are_hidden(self, monkeypatch):
        """
        An error that arises in our own code alone still shows where.
        """
        monkeypatch.setattr(failure, "_OWN", (str(Path(__file__).parent),))
        text = chain_of(travelled(lambda: boom(KeyError(1))))[-1].text
        assert "in boom" in text

    def test_recursion_error_is_bounded(self):
        """
        A RecursionError travels with a text of at most 256 KiB.
        """

        def even(n):
            return odd(n + 1)

        def odd(n):
            return even(n + 1)

        error = travelled(lambda: even(0))
        assert type(error) is RecursionError
        assert len(chain_of(error)[-1].text.encode()) <= 256 * 1024

    def test_long_message_is_cut_in_the_text(self):
        """
        A message of megabytes does not fill the text; the exception itself keeps it.
        """
        error = travelled(lambda: boom(ValueError("x" * 1_000_000)))
        assert len(error.args[0]) == 1_000_000
        assert len(chain_of(error)[-1].text.encode()) <= 256 * 1024
        assert "bytes left out" in chain_of(error)[-1].text

    def test_message_that_no_frame_holds_is_cut(self):
        """
        An exception of megabytes is a RemoteError with what has room of its text.
        """
        error = travelled(lambda: boom(ValueError("x" * 3_000_000)))
        assert isinstance(error, RemoteError)
        assert isinstance(error, ValueError)
        assert "too large to travel" in str(error)

    def test_remote_traceback_pickles(self):
        """
        The error may be pickled again, with the text of its last cause.
        """
        assert pickle.loads(pickle.dumps(RemoteTraceback("text"))).text == "text"


class TestWhatCannotTravel:
    @pytest.mark.parametrize(
        ("error", "name", "said", "reason"),
        [
            (Holder("locked", threading.Lock()), "Holder", "locked", "cannot be pickled.*lock"),
            (Liar("x"), "Liar", "x", "its pickle made a dict"),
            (Impostor("x"), "Impostor", "x", "its pickle made a KeyError"),
            (Exiting("x"), "Exiting", "x", "cannot be pickled.*SystemExit"),
        ],
    )
    def test_it_becomes_a_remote_error(self, error, name, said, reason):
        """
        An exception that does not survive pickling is a RemoteError with type name, text and reason, also of its class.
        """
        back = travelled(lambda: boom(error))
        with pytest.raises(type(error), match=f"^{said} .*{reason}"):
            raise back
        assert isinstance(back, RemoteError)
        assert (name, (said,)) == (type(back).__name__, back.args)
        assert back.type_name == f"{__name__}.{name}"
        assert "in boom" in back.traceback
        assert back.__notes__ == ["raised by f() on node 1"]

    def test_the_rest_of_the_chain_travels(self):
        """
        Only the link that cannot travel is replaced, at its place.
        """

        def run():
            try:
                boom(ValueError("first"))
            except ValueError as error:
                try:
                    raise Holder("second", threading.Lock()) from error
                except Holder as holder:
                    raise KeyError("third") from holder

        chain = chain_of(travelled(run))
        expected = [KeyError, RemoteError, ValueError, RemoteTraceback]
        assert [isinstance(link, kind) for link, kind in zip(chain, expected, strict=True)] == [True] * 4
        assert isinstance(chain[1], Holder)
        assert str(chain[1]).startswith("second ")

    def test_group_member_is_replaced_alone(self):
        """
        A group comes back as a group with a RemoteError in the place of the member that cannot travel.
        """
        error = travelled(lambda: boom(ExceptionGroup("g", [Liar("a"), KeyError("b")])))
        assert [isinstance(member, RemoteError) for member in error.exceptions] == [True, False]

    def test_class_that_is_missing_here(self):
        """
        A class of a module that this side lacks is named in the RemoteError.
        """
        node = (
            "import sys, types, pickle\n"
            "from skyward.link.failure import dump_failure\n"
            "m = types.ModuleType('elsewhere'); sys.modules['elsewhere'] = m\n"
            "exec('class Odd(Exception): pass', m.__dict__)\n"
            "try: raise m.Odd('hm')\n"
            "except Exception as error: sys.stdout.buffer.write(dump_failure(error))\n"
        )
        data = subprocess.run([sys.executable, "-c", node], capture_output=True, check=True).stdout
        with pytest.raises(RemoteError, match=r"elsewhere\.Odd: hm.*No module named 'elsewhere'"):
            raise load_failure(data, note="n")

    def test_text_that_cannot_be_had(self):
        """
        An exception whose `__str__` raises travels all the same.
        """
        error = travelled(lambda: boom(Mute()))
        assert type(error) is Mute

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (SystemExit(3), r"called sys\.exit\(3\)"),
            (SystemExit(), r"called sys\.exit\(\)"),
            (SystemExit("bye"), r"called sys\.exit\('bye'\)"),
            (KeyboardInterrupt(), "raised KeyboardInterrupt"),
            (GeneratorExit(), "raised GeneratorExit"),
            (asyncio.CancelledError(), r"raised asyncio\.exceptions\.CancelledError"),
            (BaseExceptionGroup("g", [SystemExit(1)]), "raised BaseExceptionGroup: g"),
        ],
    )
    def test_what_is_no_exception_does_not_end_the_client(self, error, message):
        """
        SystemExit and its like come back as a RemoteError that says what the function did.
        """
        with pytest.raises(RemoteError, match=f"The function {message}"):
            raise travelled(lambda: boom(error))


class TestHostileAndHuge:
    @pytest.mark.parametrize("data", [b"", b"garbage", dump_failure(KeyError(1))[:-5], pickle.dumps(None)])
    def test_malformed_bytes_are_a_remote_error(self, data):
        """
        Bytes that are no failure become a RemoteError and no other exception.
        """
        error = load_failure(data, note="n")
        assert type(error) is RemoteError
        assert error.__notes__ == ["n"]

    def test_cycles_end(self):
        """
        A chain that runs in a circle travels, and ends in the traceback.
        """
        a, b = ValueError("a"), KeyError("b")
        a.__context__, b.__context__ = b, a
        error = load_failure(dump_failure(a), note="n")
        assert [type(link) for link in chain_of(error)] == [ValueError, KeyError, RemoteTraceback]

    def test_exceptions_that_hold_each_other(self):
        """
        Two exceptions that hold each other outside the chain's links do not keep the first from coming back.
        """
        a, b = Holder("a"), Holder("b")
        a.other, b.other = b, a
        a.__cause__ = b
        assert type(load_failure(dump_failure(a), note="n")) is Holder

    def test_long_chains_are_cut(self):
        """
        Of a chain of thousands the outermost hundred travel.
        """
        error = ValueError(0)
        for number in range(1, 5000):
            later = ValueError(number)
            later.__context__ = error
            error = later
        chain = chain_of(load_failure(dump_failure(error), note="n"))
        assert [link.args for link in chain[:2]] == [(4999,), (4998,)]
        assert len(chain) == 101
        assert isinstance(chain[-1], RemoteTraceback)

    def test_nested_groups_do_not_break_it(self):
        """
        Groups nested thousands deep still come back as some exception with a note.
        """
        error = ValueError("deep")
        for _ in range(3000):
            error = ExceptionGroup("g", [error])
        assert load_failure(dump_failure(error), note="n").__notes__ == ["n"]


class TestRaising:
    def test_context_of_the_node_is_kept(self):
        """
        Raised while something else is handled, the chain of the node stays, and what is handled follows it.
        """
        error = travelled(implicit)

        def meanwhile():
            try:
                boom(OSError("here"))
            except OSError:
                raise_failure(error)

        with pytest.raises(KeyError, match="outer") as raised:
            meanwhile()
        assert isinstance(raised.value.__context__, ValueError)
        chain = chain_of(raised.value)
        assert [type(link) for link in chain] == [KeyError, ValueError, RemoteTraceback, OSError]

    def test_raising_twice_changes_nothing(self):
        """
        A failure may be raised again while it is handled.
        """
        error = travelled(explicit)

        def twice():
            try:
                raise_failure(error)
            except KeyError as handled:
                raise_failure(handled)

        for _ in range(2):
            with pytest.raises(KeyError, match="outer"):
                twice()
        assert [type(link) for link in chain_of(error)] == [KeyError, ValueError, RemoteTraceback]
