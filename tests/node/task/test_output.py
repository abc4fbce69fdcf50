import asyncio
import contextlib
import io
import os
import pickle
import subprocess
import sys
import threading

import cloudpickle
import pytest

import skyward as sky
from skyward.errors import ConfigError, UsageError
from skyward.function import function
from skyward.node.task import task_context
from skyward.node.task.output import CallbackWriter, redirect_output, silent, stderr, stdout
from skyward.node.worker.tagged_lines import TaggedReader, TaggedStream


@contextlib.contextmanager
def task(call=1, node=0):
    context = task_context.TaskContext(call_id=call, function="f", facts={"node": node}, membership={"total_nodes": 4})
    token = task_context.set_context(context)
    try:
        yield
    finally:
        task_context.reset_context(token)


@contextlib.contextmanager
def worker():
    """Stand in a worker's place, with its streams on pipes; give what comes out, as `(stream, call, text)`."""
    pipes = {1: os.pipe(), 2: os.pipe()}
    # Not a fixture: pytest puts its own streams back between a fixture and its test.
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        TaggedStream(fd, task_context.current_call_id, index=number - 1) for number, (_, fd) in pipes.items()
    )

    def lines():
        got = []
        for number, (end, _) in pipes.items():
            (sys.stdout if number == 1 else sys.stderr).flush()
            os.set_blocking(end, False)
            with contextlib.suppress(BlockingIOError):
                got += [(number, *line) for line in TaggedReader().feed(os.read(end, 1 << 16))]
        return got

    try:
        yield lines
    finally:
        sys.stdout, sys.stderr = before
        for end, fd in pipes.values():
            os.close(end)
            os.close(fd)


def both(text):
    print(text)
    print(text, file=sys.stderr)
    return text


def items(text):
    for number in range(2):
        print(text, number)
        got = yield number
        if got:
            print("got", got)
    return "end"


async def later(text):
    print(text)
    await asyncio.sleep(0)
    print(text, "again")
    return text


async def later_items(text):
    for number in range(2):
        print(text, number)
        yield number


async def listed(stream):
    got = []
    async for item in stream:
        print("between")
        got.append(item)
    return got


def in_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_head_alone_is_seen():
    """
    With `only="head"` the first rank's stdout is seen, and everybody's stderr.
    """
    with worker() as seen:
        filtered = stdout(only="head")(both)
        for node in range(2):
            with task(call=node + 1, node=node):
                assert filtered("x") == "x"
        assert seen() == [(1, 1, "x"), (2, 1, "x"), (2, 2, "x")]


def test_predicate_sees_the_rank():
    """
    A predicate is asked with the rank's info, for each stream apart.
    """
    with worker() as seen:
        filtered = stderr(only=lambda info: info.node in {1, 2})(both)
        for node in range(4):
            with task(call=node + 1, node=node):
                filtered("x")
        assert [call for stream, call, _ in seen() if stream == 2] == [2, 3]


def test_silent_shows_nothing():
    """
    Nothing is seen of a silent function, its threads included, and everything afterwards.
    """
    with worker() as seen:

        @silent
        def run():
            both("hidden")
            in_thread(lambda: both("hidden too"))
            sys.stdout.buffer.write(b"hidden bytes\n")
            return 1

        with task():
            assert run() == 1
            print("seen")
            in_thread(lambda: print("seen too"))
        assert seen() == [(1, 1, "seen"), (1, 1, "seen too")]


def test_exception_ends_the_silence():
    """
    A silent function that raises leaves no silence behind.
    """
    with worker() as seen:

        @silent
        def run():
            raise KeyError("x")

        with task():
            with pytest.raises(KeyError, match="x"):
                run()
            print("seen")
        assert seen() == [(1, 1, "seen")]


def test_calls_in_one_process_do_not_disturb_each_other():
    """
    Two threads run calls; one is silent, and the other's prints are seen while it is.
    """
    with worker() as seen:
        inside, done = threading.Event(), threading.Event()

        @silent
        def quiet():
            inside.set()
            done.wait(10)
            print("hidden")

        def first():
            with task(call=1):
                quiet()

        thread = threading.Thread(target=first)
        thread.start()
        inside.wait(10)
        with task(call=2):
            print("seen")
        done.set()
        thread.join()
        assert seen() == [(1, 2, "seen")]


def test_generator_is_filtered_step_by_step():
    """
    A generator's own prints are filtered, and those of the code that uses its items are not; `send` and `return` work.
    """
    with worker() as seen:
        filtered = silent(items)
        with task():
            stream = filtered("hidden")
            assert next(stream) == 0
            print("seen")
            assert stream.send("hello") == 1
            with pytest.raises(StopIteration) as end:
                next(stream)
            assert end.value.value == "end"
        assert seen() == [(1, 1, "seen")]


def test_generator_hears_what_is_thrown_and_its_close():
    """
    `throw` and `close` reach the function's own generator, and what it prints then is filtered too.
    """
    with worker() as seen:
        heard = []

        @silent
        def stream():
            while True:
                try:
                    yield 1
                except ValueError as error:
                    print("hidden")
                    heard.append(str(error))
                except GeneratorExit:
                    print("hidden")
                    heard.append("closed")
                    raise

        with task():
            running = stream()
            next(running)
            assert running.throw(ValueError("v")) == 1
            running.close()
        assert heard == ["v", "closed"]
        assert seen() == []


def test_coroutines_are_filtered():
    """
    `async def` functions and async generators are filtered while they run, and nothing else is.
    """
    with worker() as seen:
        with task():
            assert asyncio.run(silent(later)("hidden")) == "hidden"
            assert asyncio.run(listed(silent(later_items)("hidden"))) == [0, 1]
        assert seen() == [(1, 1, "between")] * 2


def test_kind_of_function_is_kept():
    """
    The filtered function is of the kind of the plain one, and has its name.
    """
    import inspect

    assert inspect.isgeneratorfunction(silent(items))
    assert inspect.iscoroutinefunction(silent(later))
    assert inspect.isasyncgenfunction(silent(later_items))
    assert not inspect.isgeneratorfunction(silent(both))
    assert silent(both).__name__ == "both"


def test_generator_behind_a_plain_function_is_filtered():
    """
    What counts is what a call gives: a generator made by a plain wrapper is filtered too.
    """
    with worker() as seen:
        with task():
            assert list(silent(lambda: items("hidden"))()) == [0, 1]
        assert seen() == []


@pytest.mark.parametrize("order", ["above", "below"])
@pytest.mark.parametrize("plain", [both, items, later], ids=lambda fn: fn.__name__)
def test_decorator_stands_above_or_below(order, plain):
    """
    Above and below `@sky.function` the result is a function whose calls are pending, with its settings.
    """
    settings = function(timeout=5, retries=1)
    made = stdout(only="head")(settings(plain)) if order == "above" else settings(stdout(only="head")(plain))
    assert isinstance(made, sky.Function)
    assert (made.timeout, made.retries, made.name) == (5, 1, plain.__name__)
    assert made.streams == (plain is items)


def test_filtered_function_travels():
    """
    A filtered function can be pickled by value, as what is sent to a node is.
    """
    with worker() as seen:
        above = silent(function(lambda text: both(text + text)))
        travelled = pickle.loads(cloudpickle.dumps(above))
        with task():
            assert travelled.local("hid") == "hidhid"
            stream = pickle.loads(cloudpickle.dumps(stdout(only=lambda info: False)(lambda: items("hidden"))))
            assert list(stream()) == [0, 1]
        assert seen() == []


def test_local_runs_filter_too(capsys):
    """
    In a process that is no worker the streams are put back as they were.
    """
    before = sys.stdout, sys.stderr
    assert silent(both)("hidden") == "hidden"
    assert stdout(only="head")(both)("seen") == "seen"
    assert (sys.stdout, sys.stderr) == before
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("seen\n", "seen\n")


def test_lines_are_handed_to_the_callback():
    """
    Both streams go to the callback line by line; text without a newline comes at the end.
    """
    with worker() as seen:
        lines = []
        with task(), redirect_output(lines.append) as (out, err):
            assert isinstance(out, CallbackWriter)
            assert isinstance(err, CallbackWriter)
            print("one\ntwo")
            print("three", file=sys.stderr)
            in_thread(lambda: print("four"))
            sys.stdout.write("rest")
        assert lines == ["one", "two", "three", "four", "rest"]
        assert seen() == []


def test_callback_may_print():
    """
    What a callback prints goes where it would go without it, to the callback around it if there is one.
    """
    with worker() as seen:
        outer = []
        with task():
            with redirect_output(lambda line: print("heard", line)):
                print("a")
            with redirect_output(outer.append), redirect_output(lambda line: print("heard", line)):
                print("b")
        assert outer == ["heard b"]
        assert seen() == [(1, 1, "heard a")]


def test_innermost_wins():
    """
    Silence inside a redirection is silent, a redirection inside silence is heard, and so is Python's own.
    """
    with worker() as seen:
        lines, text = [], io.StringIO()

        @silent
        def run():
            with redirect_output(lines.append):
                print("heard")
            with contextlib.redirect_stdout(text):
                print("kept")
            print("hidden")

        with task(), redirect_output(lines.append):
            silent(both)("hidden")
            run()
            print("heard too")
        assert lines == ["heard", "heard too"]
        assert text.getvalue() == "kept\n"
        assert seen() == []


def test_redirection_of_python_itself_is_followed():
    """
    Where Python's own redirection stands around ours, ours wins, and the other is as before afterwards.
    """
    text, lines = io.StringIO(), []
    with contextlib.redirect_stdout(text):
        with redirect_output(lines.append):
            print("heard")
            sys.stdout.writelines(["a\n", "b\n"])
            assert sys.stdout.getvalue() == ""
        print("kept")
        assert sys.stdout is text
    assert (lines, text.getvalue()) == (["heard", "a", "b"], "kept\n")


def test_overlapping_threads_put_streams_back():
    """
    Threads that redirect at the same time each hear their own, and the last one puts the stream back.
    """
    before = sys.stdout
    heard = {name: [] for name in "ab"}
    barrier = threading.Barrier(2, timeout=10)

    def run(name):
        with redirect_output(heard[name].append):
            barrier.wait()
            print(name)
            barrier.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"a": ["a"], "b": ["b"]}
    assert sys.stdout is before


def test_writer_is_a_text_stream():
    """
    A writer has what programs expect of a stream, and no descriptor.
    """
    lines = []
    writer = CallbackWriter(lines.append)
    print("a", "b", file=writer)
    writer.writelines(["c\n", "d"])
    assert (writer.encoding, writer.errors, writer.isatty(), writer.writable()) == (
        "utf-8",
        "backslashreplace",
        False,
        True,
    )
    with pytest.raises(OSError, match="fileno"):
        writer.fileno()
    writer.close()
    assert lines == ["a b", "c", "d"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stdout(only="haed"), r"stdout\(only='haed'\): only must be \"head\" or .* Did you mean"),
        (lambda: stderr(only=3), r"stderr\(only=3\): only must be"),
        (lambda: redirect_output(3).__enter__(), "callback is 3; it must be a function"),
        (lambda: CallbackWriter(None), "callback is None"),
    ],
)
def test_wrong_settings_are_named(make, message):
    """
    The error names the parameter and what it takes.
    """
    with pytest.raises(ConfigError, match=message):
        make()


def test_only_functions_are_filtered():
    """
    What is no function is refused where it stands.
    """
    with pytest.raises(UsageError, match="Output is filtered of a function, and this is a int"):
        silent(3)


def test_filter_works_in_a_fresh_process():
    """
    Nothing of it needs the streams that the tests run under.
    """
    code = (
        "import skyward as sky\n"
        "@sky.silent\ndef f():\n    print('hidden')\n    return 1\n"
        "assert f() == 1\nlines = []\n"
        "with sky.redirect_output(lines.append):\n    print('captured')\n"
        "print(lines)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['captured']\n"


def test_coroutines_of_one_call_do_not_disturb_each_other():
    """
    Of two coroutines that run side by side only the silent one is silent.
    """

    async def both_at_once():
        await asyncio.gather(silent(later)("hidden"), later("seen"))

    with worker() as seen:
        with task():
            asyncio.run(both_at_once())
        assert seen() == [(1, 1, "seen"), (1, 1, "seen again")]


def test_coroutines_outside_a_task_do_not_disturb_each_other(capsys):
    """
    Nor do they in a program without a pool.
    """

    async def both_at_once():
        await asyncio.gather(silent(later)("hidden"), later("seen"))

    asyncio.run(both_at_once())
    assert capsys.readouterr().out == "seen\nseen again\n"


def test_descriptors_follow_while_the_call_is_the_only_one(capfd):
    """
    When another call begins in the process, they are its own too; when it has ended, they follow again.
    """
    begun, end = threading.Event(), threading.Event()

    def other():
        with task(call=2):
            begun.set()
            end.wait(10)

    with worker():
        lines = []
        with task(call=1), redirect_output(lines.append):
            os.write(1, b"alone\n")
            thread = threading.Thread(target=other)
            thread.start()
            begun.wait(10)
            os.write(1, b"with another\n")
            end.set()
            thread.join()
            os.write(1, b"alone again\n")
        os.write(1, b"afterwards\n")
    assert lines == ["alone", "alone again"]
    assert capfd.readouterr().out == "with another\nafterwards\n"


def test_descriptors_are_silent_while_every_call_is(capfd):
    """
    A call that begins and is not silent ends the silence of C code.
    """
    begun, end = threading.Event(), threading.Event()

    @silent
    def quietly():
        begun.set()
        end.wait(10)

    def other():
        with task(call=2):
            quietly()
            begun.clear()

    @silent
    def run():
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait(10)
        os.write(1, b"hidden\n")
        with task(call=3):
            os.write(1, b"seen\n")
        end.set()
        thread.join()

    with worker(), task(call=1):
        run()
    assert capfd.readouterr().out == "seen\n"


def test_error_of_a_callback_is_raised_where_its_redirection_ends():
    """
    Where a process printed the line, there is no print that could raise it; what it prints afterwards is read on.
    """

    def picky(line):
        if line == "bad":
            raise KeyError(line)
        heard.append(line)

    heard = []
    with pytest.raises(KeyError, match="bad"), task(), redirect_output(picky):
        subprocess.run(["sh", "-c", "echo bad; for n in $(seq 20000); do echo good; done"], check=True)
    assert heard[-1:] == ["good"]


def test_streams_that_a_process_is_given_stay_its_own():
    """
    A pipe, a file or nothing at all that a program asks for is not replaced, however it is passed.
    """
    lines = []
    with task(), redirect_output(lines.append), open(os.devnull, "w") as nowhere:
        assert subprocess.run(["echo", "piped"], capture_output=True, text=True, check=True).stdout == "piped\n"
        assert subprocess.check_output("echo out; echo err >&2", shell=True, stderr=subprocess.STDOUT) == b"out\nerr\n"
        subprocess.run(["echo", "dropped"], stdout=subprocess.DEVNULL, check=True)
        subprocess.run(["echo", "dropped"], stdout=nowhere, check=True)
        subprocess.Popen(["echo", "dropped"], -1, None, None, nowhere).wait()
        subprocess.run("echo heard; echo too >&2", shell=True, stderr=subprocess.STDOUT, check=True)
    assert lines == ["heard", "too"]


def test_nothing_is_left_of_a_redirection():
    """
    Neither in the standard library, nor among descriptors and threads.
    """
    import multiprocessing.process as processes

    def state():
        return (
            subprocess.Popen.__init__,
            processes.BaseProcess.start,
            os.fstat(1).st_ino,
            len(os.listdir("/dev/fd")),
            threading.active_count(),
            set(task_context.watchers),
        )

    def run():
        with task(), redirect_output(lines.append):
            silent(both)("hidden")
            os.write(1, b"heard\n")

    lines = []
    run()
    before = state()
    run()
    assert state() == before
    assert lines == ["heard"] * 2


PROGRAM = "import os, sys, subprocess, skyward as sky\n"


def program(code):
    """Run code in a program of its own, and give what it showed."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + code], capture_output=True, text=True, check=True)
    return done.stdout


def test_callback_of_a_program_may_print():
    """
    Its prints, and those of processes that it starts, go to where they would go without the redirection.
    """
    code = (
        "def callback(line):\n"
        "    print('heard', line, flush=True)\n"
        "    subprocess.run(['echo', 'and echoed', line])\n"
        "print('before')\n"
        "with sky.redirect_output(callback):\n"
        "    print('a')\n"
        "    os.write(1, b'b\\n')\n"
        "print('after')\n"
    )
    assert program(code).splitlines() == ["before", "heard a", "and echoed a", "heard b", "and echoed b", "after"]


def test_a_stream_outlives_its_section():
    """
    Another thread may be in a `print`, which on Python 3.11 holds no reference to the stream that it prints to.
    """
    code = (
        "import weakref\n"
        "with sky.redirect_output(lambda line: None):\n"
        "    streams = [weakref.ref(sys.stdout), weakref.ref(sys.stderr)]\n"
        "print([stream() is None for stream in streams])\n"
    )
    assert program(code) == "[False, False]\n"


def test_silence_of_a_process_without_streams():
    """
    A program that has closed its descriptors runs as ever.
    """
    code = (
        "out = os.dup(1)\n"
        "os.close(1)\n"
        "os.close(2)\n"
        "assert sky.silent(lambda: print('x') or 5)() == 5\n"
        "heard = []\n"
        "with sky.redirect_output(heard.append):\n"
        "    print('y')\n"
        "os.write(out, repr(heard).encode())\n"
        "os._exit(0)\n"
    )
    assert program(code) == "['y']"
