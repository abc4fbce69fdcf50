import io
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from hypothesis import given, strategies as st

from skyward.node.task import task_context
from skyward.node.worker.tagged_lines import (
    CHUNK_BYTES,
    LINE_BYTES,
    OPEN_BYTES,
    OPEN_LINES,
    TaggedReader,
    TaggedStream,
    send_all,
)


class Pipe:
    """A stream on a pipe, and what comes out of its other end."""

    def __init__(self, current_call=lambda: 7):
        self.end, fd = os.pipe()
        self.fd = fd
        self.stream = TaggedStream(fd, current_call)
        self.raw = b""

    def read(self):
        os.set_blocking(self.end, False)
        try:
            data = os.read(self.end, 1 << 20)
        except BlockingIOError:
            data = b""
        self.raw += data
        return data

    def lines(self):
        reader = TaggedReader()
        return reader.feed(self.read()) + reader.finish()

    def close(self):
        os.close(self.fd)
        os.close(self.end)


@pytest.fixture
def make():
    made = []

    def one(**settings):
        made.append(Pipe(**settings))
        return made[-1]

    yield one
    for pipe in made:
        pipe.close()


@pytest.fixture
def pipe(make):
    return make()


@contextmanager
def task(call):
    token = task_context.set_context(task_context.TaskContext(call_id=call, function="f", facts={}, membership={}))
    try:
        yield
    finally:
        task_context.reset_context(token)


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_line_goes_under_its_call(pipe):
    """
    A line is one chunk: call id, mark, text, newline.
    """
    print("epoch", 1, file=pipe.stream)
    assert pipe.read() == b"\x1e7\x1fepoch 1\n"


def test_line_of_nobody_goes_as_it_is(make):
    """
    Without a call there is no tag, except where the text could be taken for one.
    """
    pipe = make(current_call=lambda: 0)
    print("plain", file=pipe.stream)
    assert pipe.read() == b"plain\n"
    print("a\x1e7\x1fb", file=pipe.stream)
    assert pipe.lines() == [(None, "a\x1e7\x1fb")]


def test_text_waits_for_its_newline(pipe):
    """
    A line is sent when it is complete; `flush` sends what there is, and the reader still makes one line of it.
    """
    pipe.stream.write("half")
    assert pipe.read() == b""
    pipe.stream.flush()
    first = pipe.read()
    assert first == b"\x1e7\x1dhalf\n"
    pipe.stream.write(" done\n")
    reader = TaggedReader()
    assert reader.feed(first) == []
    assert reader.feed(pipe.read()) == [(7, "half done")]


@pytest.mark.parametrize("size", [CHUNK_BYTES - 5, CHUNK_BYTES - 4, CHUNK_BYTES - 3, CHUNK_BYTES, 5 * CHUNK_BYTES])
@pytest.mark.parametrize("call", [0, 7])
def test_long_line_is_cut_into_chunks(make, size, call):
    """
    No chunk is longer than what a pipe takes at once, and the reader makes one line of them.
    """
    pipe = make(current_call=lambda: call)
    text = "".join(chr(0x1F600 + place % 40) if place % 7 == 0 else "x" for place in range(size))[:size]
    print(text, file=pipe.stream)
    assert pipe.lines() == [(call or None, text)]
    assert max(len(chunk) + 1 for chunk in pipe.raw.split(b"\n")) <= CHUNK_BYTES


def test_threads_do_not_mix_their_lines(pipe):
    """
    Each thread of a call has a line of its own.
    """
    pipe.stream.write("mine ")
    in_thread(lambda: print("theirs", file=pipe.stream))
    print("too", file=pipe.stream)
    assert pipe.lines() == [(7, "theirs"), (7, "mine too")]


def test_flushed_text_is_not_mixed_with_another_thread(pipe):
    """
    What was flushed becomes a line of its own when another thread of the call goes on.
    """
    pipe.stream.write("mine")
    pipe.stream.flush()
    in_thread(lambda: print("theirs", file=pipe.stream))
    print(" too", file=pipe.stream)
    assert pipe.lines() == [(7, "mine"), (7, "theirs"), (7, " too")]


def test_many_threads_lose_nothing(make):
    """
    Lines of many threads, long ones among them, all arrive whole and under their call.
    """
    ids = threading.local()
    pipe = make(current_call=lambda: ids.call)
    texts = {call: [f"{call}-{line}-" + "x" * (line * 900) for line in range(12)] for call in range(1, 6)}

    def write(call):
        ids.call = call
        for text in texts[call]:
            print(text, file=pipe.stream)

    threads = [threading.Thread(target=write, args=(call,)) for call in texts]
    reader, got = TaggedReader(), []

    def read():
        while data := os.read(pipe.end, 1 << 16):
            got.extend(reader.feed(data))
            if data.endswith(b"end of all\n"):
                return

    drain = threading.Thread(target=read)
    for thread in [drain, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(pipe.fd, b"end of all\n")
    drain.join()
    assert {call: [text for its, text in got if its == call] for call in texts} == texts


def test_end_of_a_call_ends_its_lines(make):
    """
    Text without a newline is a line when its call ends, flushed or not, and the next call begins anew.
    """
    pipe = make(current_call=task_context.current_call_id)
    with task(1):
        pipe.stream.write("kept")
    with task(2):
        pipe.stream.write("flu")
        pipe.stream.flush()
        pipe.stream.write("shed")
    with task(3):
        pipe.stream.write("all")
        pipe.stream.flush()
        in_thread(lambda: pipe.stream.write("in a thread"))
    with task(1):
        print("new", file=pipe.stream)
    reader = TaggedReader()
    assert reader.feed(pipe.read()) == [(1, "kept"), (2, "flushed"), (3, "all"), (3, "in a thread"), (1, "new")]


def test_flush_of_nobody_leaves_the_lines_of_others(make):
    """
    A thread that works for no call, as a worker's after an answer, sends nothing of lines that are being printed.
    """
    pipe = make(current_call=task_context.current_call_id)
    calls = range(1, 201)
    half, flushed = threading.Barrier(len(calls) + 1), threading.Event()

    def run(call):
        with task(call):
            pipe.stream.write(f"line of {call}")
            half.wait(60)
            flushed.wait(60)
            print(file=pipe.stream, flush=True)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    half.wait(60)
    pipe.stream.flush()
    begun = pipe.read()
    flushed.set()
    for thread in threads:
        thread.join()
    assert begun == b""
    assert sorted(pipe.lines()) == [(call, f"line of {call}") for call in calls]


def test_end_of_a_process_sends_what_anybody_holds_back(make):
    """
    No process goes on with those lines.
    """
    pipe = make(current_call=lambda: 0)
    in_thread(lambda: pipe.stream.write("of a thread"))
    pipe.stream.write("of the main thread")
    send_all(pipe.stream)
    assert sorted(text for _, text in pipe.lines()) == ["of a thread", "of the main thread"]


def test_stream_is_a_text_stream(pipe):
    """
    It has what programs expect of `sys.stdout`, and closing it does not close the pipe.
    """
    stream = pipe.stream
    assert isinstance(stream, io.TextIOBase)
    assert (stream.encoding, stream.errors, stream.fileno(), stream.isatty()) == (
        "utf-8",
        "backslashreplace",
        pipe.fd,
        False,
    )
    assert stream.writable()
    assert not stream.readable()
    assert stream.name == "<stdout>"
    stream.writelines(["a\n", "b\n"])
    assert stream.write("ü\n") == 2
    assert stream.buffer.write(b"\xff raw\n") == 6
    stream.write("lone \ud800\n")
    stream.reconfigure(line_buffering=True)
    stream.close()
    print("open", file=stream)
    assert not stream.closed
    assert [text for _, text in pipe.lines()] == ["a", "b", "ü", "\\xff raw", "lone \\ud800", "open"]
    with pytest.raises(TypeError, match="must be str"):
        stream.write(b"bytes")


def test_full_pipe_makes_the_writer_wait(make):
    """
    Where a subprocess made the pipe non-blocking, a write still waits for room and loses nothing.
    """
    pipe = make()
    os.set_blocking(pipe.fd, False)
    texts = ["x" * 3000 + str(number) for number in range(60)]
    writer = threading.Thread(target=lambda: [print(text, file=pipe.stream) for text in texts])
    writer.start()
    reader, got = TaggedReader(), []
    while len(got) < len(texts):
        got += reader.feed(os.read(pipe.end, 1 << 16))
    writer.join()
    assert got == [(7, text) for text in texts]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_does_not_repeat_its_parent():
    """
    A child prints under its parent's call, and leaves its parent's unfinished line to the parent.
    """
    code = (
        "import os, sys; from skyward.node.worker.tagged_lines import TaggedStream\n"
        "s = TaggedStream(1, lambda: 7); s.write('pa')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    print('child', file=s); s.flush(); os._exit(0)\n"
        "os.waitpid(pid, 0); print('rent', file=s)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert TaggedReader().feed(done.stdout) == [(7, "child"), (7, "parent")]


LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30)
UNTAGGED = st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"").replace(b"\x1e", b""))


def cut(draw, data, most):
    """Cut data anywhere, into pieces that may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=most)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@st.composite
def traffic(draw):
    """Draw chunks of tagged lines and pieces of untagged ones, interleaved, and the lines they stand for."""
    calls = draw(st.lists(st.integers(1, 2**64 - 1), min_size=1, max_size=4, unique=True))
    sources = {call: draw(st.lists(LINE, max_size=4)) for call in calls}
    untagged = draw(st.lists(UNTAGGED, max_size=5))
    pieces = {call: [] for call in calls}
    for call, lines in sources.items():
        for line in lines:
            *firsts, last = cut(draw, line.encode(), 3)
            pieces[call] += [b"\x1e%x\x1d%b\n" % (call, first) for first in firsts]
            pieces[call].append(b"\x1e%x\x1f%b\n" % (call, last))
    stream = b"".join(line + b"\n" for line in untagged)
    pieces[None] = cut(draw, stream, 6)
    turns = draw(st.permutations([source for source, items in pieces.items() for _ in items]))
    data = b"".join(pieces[source].pop(0) for source in turns)
    wanted = {None: [line.decode("utf-8", "backslashreplace") for line in untagged], **sources}
    return data, wanted


@given(traffic(), st.integers(1, 40))
def test_any_interleaving_is_put_together_again(drawn, step):
    """
    Chunks of any calls, untagged bytes between them, and any cuts in reading: every line arrives as it was written.
    """
    data, wanted = drawn
    reader, got = TaggedReader(), []
    for start in range(0, len(data), step):
        got += reader.feed(data[start : start + step])
    assert reader.finish() == []
    assert {source: [text for call, text in got if call == source] for source in wanted} == wanted


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"\x1e", b"\x1e7", b"\x1e7\x1f", b"\x1e8\x1d", b"\n"])))
def test_reader_takes_any_bytes(pieces):
    """
    Nothing that comes makes it raise, and what was read in pieces is what is read at once.
    """
    reader, whole = TaggedReader(), TaggedReader()
    got = [line for piece in pieces for line in reader.feed(piece)] + reader.finish()
    data = b"".join(pieces)
    assert got == whole.feed(data) + whole.finish()
    if b"\x1e" not in data:
        assert "\n".join(text for _, text in got) == data.removesuffix(b"\n").decode("utf-8", "backslashreplace")


def test_lines_of_many_calls_grow_side_by_side():
    """
    A worker with hundreds of slots may have as many unfinished lines.
    """
    reader, calls = TaggedReader(), range(1, 501)
    for call in calls:
        assert reader.feed(b"\x1e%x\x1d50 %%\n" % call) == []
    for call in calls:
        assert reader.feed(b"\x1e%x\x1f, 100 %%\n" % call) == [(call, "50 %, 100 %")]


def test_reader_holds_little():
    """
    Lines without end, and calls without end, do not fill its memory.
    """
    reader, lines = TaggedReader(), []
    for call in range(1, 4 * OPEN_LINES):
        lines += reader.feed(b"\x1e%x\x1dbegun\n" % call)
    assert len(lines) == 3 * OPEN_LINES - 1
    lines = []
    for _ in range(40):
        lines += reader.feed(b"x" * (LINE_BYTES // 4))
    assert {len(text) for call, text in lines if call is None} == {LINE_BYTES}
    assert len([text for call, text in lines if call is None]) == 9
    assert sum(len(text) for _, text in reader.finish()) <= LINE_BYTES + 5 * OPEN_LINES
    for call in range(1, OPEN_LINES):
        lines += reader.feed(b"\x1e%x\x1d%b\n" % (call, b"x" * (LINE_BYTES // 2)))
    assert sum(len(text) for _, text in reader.finish()) <= OPEN_BYTES


def test_cut_line_keeps_its_characters_whole():
    """
    A line that is too long is cut between characters.
    """
    text = "x" + "ü" * LINE_BYTES
    got = TaggedReader().feed(text.encode() + b"\n")
    assert len(got) == 3
    assert "".join(part for _, part in got) == text


def test_bytes_that_are_no_text_are_shown():
    """
    What is no UTF-8 appears as escapes.
    """
    assert TaggedReader().feed(b"a\xffb\n") == [(None, "a\\xffb")]
