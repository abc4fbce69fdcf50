"""Hostile pickles by attack: those that run code here, and those that exhaust this process."""

from __future__ import annotations

import pickle
import struct
from typing import Any

MARK, STOP, REDUCE, BUILD, NEWOBJ, EMPTY, NONE = b"(", b".", b"R", b"b", b"\x81", b")", b"N"


def text(value: str) -> bytes:
    """Push text."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, found: str) -> bytes:
    """Push what a name stands for."""
    return text(module) + text(found) + b"\x93"


def plain(value: Any) -> bytes:
    """Push plain data."""
    return pickle.dumps(value, protocol=3)[2:-1]


def call(module: str, found: str, *args: Any) -> bytes:
    """Call something with plain data, or with what is pushed by bytes in a list."""
    return (
        name(module, found)
        + MARK
        + b"".join(arg[0] if type(arg) is list else plain(arg) for arg in args)
        + b"t"
        + REDUCE
    )


def whole(*orders: bytes) -> bytes:
    """Make a pickle of what pushes one value."""
    return b"\x80\x04" + b"".join(orders) + STOP


def doubled(times: int) -> bytes:
    """Push a tuple of one tuple twice, of one tuple twice, and so on: its hash takes 2 ** times steps."""
    return EMPTY + b"".join(b"q\x000h\x00h\x00\x86" for _ in range(times))


def nested(times: int, order: bytes = b"\x85") -> bytes:
    """Push a tuple in a tuple, and so on: its hash takes so many frames of C's stack."""
    return EMPTY + order * times


CALLED = (
    ("os", "system", "echo run"),
    ("posix", "system", "echo run"),
    ("nt", "system", "echo run"),
    ("subprocess", "run", ["echo", "run"]),
    ("subprocess", "Popen", ["echo", "run"]),
    ("subprocess", "check_output", "echo run"),
    ("builtins", "eval", "print('run')"),
    ("builtins", "exec", "print('run')"),
    ("builtins", "compile", "run", "", "exec"),
    ("builtins", "open", "run", "w"),
    ("builtins", "__import__", "this"),
    ("builtins", "print", "run"),
    ("builtins", "input", "run"),
    ("builtins", "breakpoint"),
    ("builtins", "globals"),
    ("builtins", "vars"),
    ("builtins", "setattr", 1, "real", 2),
    ("builtins", "map", 1, 2),
    ("builtins", "filter", None, [1]),
    ("builtins", "iter", [1]),
    ("builtins", "type", "Made", (), {}),
    ("builtins", "type", 1),
    ("builtins", "list", [1]),
    ("builtins", "str", b"x", "utf-8"),
    ("builtins", "bytes", 10**12),
    ("builtins", "bytearray", 10**12),
    ("builtins", "memoryview", 10**12),
    ("builtins", "frozenset", [(1, 2)]),
    ("builtins", "dict", [((1, 2), 3)]),
    ("builtins", "SystemExit", 3),
    ("builtins", "KeyboardInterrupt"),
    ("builtins", "BaseException", 1),
    ("builtins", "super"),
    ("builtins", "property", 1),
    ("builtins", "object", 1),
    ("_io", "open", "run", "w"),
    ("io", "FileIO", "run", "w"),
    ("functools", "partial", 1),
    ("functools", "reduce", 1, [1, 2]),
    ("operator", "attrgetter", "__class__"),
    ("operator", "methodcaller", "upper"),
    ("operator", "itemgetter", 0),
    ("operator", "call", 1),
    ("_operator", "attrgetter", "__class__"),
    ("itertools", "chain", [1]),
    ("codecs", "decode", b"x", "rot13"),
    ("_codecs", "encode", "x", "latin1"),
    ("codecs", "open", "run"),
    ("importlib", "import_module", "this"),
    ("importlib", "reload", 1),
    ("runpy", "run_path", "run.py"),
    ("runpy", "_run_code", "run", {}),
    ("code", "interact"),
    ("pdb", "run", "print('run')"),
    ("bdb", "Bdb"),
    ("timeit", "timeit", "print('run')"),
    ("cProfile", "run", "print('run')"),
    ("trace", "Trace"),
    ("pty", "spawn", "sh"),
    ("webbrowser", "open", "http://127.0.0.1"),
    ("platform", "popen", "echo run"),
    ("shutil", "rmtree", "run"),
    ("pathlib", "Path.write_text", "run"),
    ("pathlib", "Path.unlink", "run"),
    ("tempfile", "mkdtemp"),
    ("socket", "create_connection", ("127.0.0.1", 1)),
    ("urllib.request", "urlopen", "http://127.0.0.1"),
    ("http.client", "HTTPConnection", "127.0.0.1"),
    ("ctypes", "CDLL", "libc.so.6"),
    ("ctypes", "string_at", 0),
    ("_ctypes", "dlopen", "libc.so.6"),
    ("marshal", "loads", b"N"),
    ("pickle", "loads", b"N."),
    ("_pickle", "loads", b"N."),
    ("pickle", "Unpickler", 1),
    ("cloudpickle", "loads", b"N."),
    ("cloudpickle.cloudpickle", "_make_function", 1, 2, 3, 4, 5),
    ("cloudpickle.cloudpickle", "_make_skeleton_class", 1, "A", (), {}, "id", None),
    ("cloudpickle.cloudpickle", "_builtin_type", "CodeType"),
    ("cloudpickle.cloudpickle", "_builtin_type", "FunctionType"),
    ("cloudpickle.cloudpickle", "subimport", "this"),
    ("types", "CodeType"),
    ("types", "FunctionType"),
    ("types", "MethodType", 1, 2),
    ("types", "ModuleType", "m"),
    ("types", "SimpleNamespace", {"a": 1}),
    ("types", "DynamicClassAttribute", 1),
    ("copyreg", "_reconstructor", 1, 2, 3),
    ("copyreg", "__newobj__", 1),
    ("copyreg", "add_extension", "os", "system", 1),
    ("weakref", "ref", 1),
    ("atexit", "register", 1),
    ("threading", "Thread"),
    ("multiprocessing.util", "spawnv_passfds", 1, 2, 3),
    ("multiprocessing.connection", "Client", ("127.0.0.1", 1)),
    ("logging.config", "fileConfig", "run"),
    ("logging", "FileHandler", "run"),
    ("ast", "literal_eval", "1"),
    ("inspect", "getsource", 1),
    ("site", "addsitedir", "."),
    ("sys", "settrace", 1),
    ("sys", "exit", 3),
    ("sys", "modules.get", "os"),
    ("gc", "get_objects"),
    ("enum", "Enum", "A"),
    ("dataclasses", "make_dataclass", "A", []),
    ("typing", "get_type_hints", 1),
    ("collections", "namedtuple", "A", "a"),
    ("collections", "UserDict", {}),
    ("collections", "ChainMap", {}),
    ("collections", "OrderedDict", [((1, 2), 3)]),
    ("collections", "Counter", [1]),
    ("collections", "deque", 10**12),
    ("collections", "defaultdict", 3),
    ("datetime", "date.fromisoformat", "2020-01-01"),
    ("datetime", "datetime.now"),
    ("datetime", "timezone.utc.utcoffset", None),
    ("datetime", "datetime", 2020, 1, 1),
    ("decimal", "Decimal", 1),
    ("decimal", "getcontext"),
    ("fractions", "Fraction", "1e99999999"),
    ("fractions", "Fraction", 1.5),
    ("uuid", "UUID", "x"),
    ("uuid", "getnode"),
    ("pathlib", "PosixPath", 3),
    ("zoneinfo", "ZoneInfo", "UTC"),
    ("zoneinfo", "ZoneInfo._unpickle", "../../etc/passwd", True),
    ("zoneinfo", "ZoneInfo._unpickle", "Europe/Atlantis", True),
    ("zoneinfo", "reset_tzpath"),
    ("skyward", "Compute"),
    ("skyward.pool", "Compute"),
    ("skyward.errors", "SkywardError", "x"),
    ("skyward.errors", "_rebuild", 1, "x", {}),
    ("skyward.errors", "annotations"),
    ("skyward.errors", "SkywardError.__init__.__globals__"),
    ("skyward.link.payload", "load", 1),
    ("skyward.link.pickling", "_restore_memoryview", 1, "B", (1,)),
    ("skyward.link.pickling", "_restore_memoryview", b"ab", "B", (10**12,)),
    ("skyward.link.pickling", "_restore_tensor", b"", "float32", (0,)),
    ("skyward.link.data.reducing", "named", "os", "system"),
    ("skyward.link.data.reducing", "named", "builtins", "eval"),
    ("skyward.link.data.reducing", "named", "builtins", "NotImplemented"),
    ("skyward.link.data.allowed_names", "_is_there", "this"),
    ("skyward.link.failure", "RemoteTraceback", 1),
    ("skyward.engine.nodes.local_host", "LocalHost"),
    ("pool", "Anything"),
    ("__main__", "anything"),
    ("", ""),
    ("builtins", "__dict__"),
    ("builtins", "object.__subclasses__"),
    ("builtins", "str.format", "{0.__class__}", 1),
    ("numpy", "load", "run"),
    ("numpy", "fromfile", "run"),
    ("numpy", "save", "run", 1),
    ("numpy", "memmap", "run"),
    ("numpy", "vectorize", 1),
    ("numpy", "frompyfunc", 1, 1, 1),
    ("numpy", "ndarray", (2,)),
    ("numpy", "float64", 1.0),
    ("numpy", "dtype", "O8,O8"),
    ("numpy", "dtype", {"names": ["a"], "formats": ["O"]}),
    ("numpy", "dtype", "f8", 1, 2),
    ("numpy", "os.system", "echo run"),
    ("numpy", "sys.exit", 3),
    ("numpy._core.numeric", "os.system", "echo run"),
    ("numpy._core.multiarray", "fromfile", "run"),
    ("numpy._core.multiarray", "frombuffer", b"", "O"),
    ("numpy._core.multiarray", "_reconstruct", 1, (0,), b"b"),
    ("numpy.core.multiarray", "scalar", 1, b""),
    ("numpy.core.numeric", "_frombuffer", b"12345678", "f8", (1,), "C"),
    ("numpy.testing._private.utils", "runstring", "print('run')", {}),
    ("numpy.f2py.crackfortran", "myeval", "print('run')"),
    ("numpy.distutils.exec_command", "exec_command", "echo run"),
    ("numpy.lib._npyio_impl", "DataSource"),
    ("numpy.ma.core", "_mareconstruct", 1, 2, 3, 4),
    ("torch", "load", "run"),
    ("torch.storage", "_load_from_bytes", b"x"),
    ("torch._utils", "_rebuild_tensor_v2", 1, 0, (1,), (1,), False, {}),
    ("torch._utils", "_rebuild_parameter", 1, True, {}),
    ("torch._dynamo.guards", "GuardBuilder.get"),
    ("torch.hub", "load", "x"),
    ("torch.utils.cpp_extension", "load_inline", "x"),
    ("torch.jit", "load", "x"),
    ("torch.nn.modules.linear", "Linear", 1, 1),
    ("skyward.link.data.tensors", "restore", b"", "load", (0,), False, False),
    ("pandas", "read_pickle", "run"),
    ("pandas", "eval", "1"),
    ("pandas.io.pickle", "read_pickle", "run"),
    ("pandas.core.frame", "DataFrame", {}),
    ("pandas._libs.internals", "_unpickle_block", 1, 2, 3),
    ("pandas.core.indexes.base", "_new_Index", 1, {}),
    ("skyward.link.data.tables", "restore", "frame"),
    ("pyarrow.lib", "_restore_array", 1),
    ("pyarrow", "py_buffer", b""),
    ("pyarrow.lib", "PyExtensionType", 1),
    ("skyward.link.data.arrow", "restore", "Table", b"x"),
    ("joblib.numpy_pickle", "load", "run"),
    ("sklearn.tree._tree", "Tree", 1),
    ("sympy", "sympify", "print('run')"),
    ("asyncio.unix_events", "_UnixSubprocessTransport._start"),
    ("pydoc", "pipepager", "x", "sh"),
    ("idlelib.run", "Executive.runcode"),
    ("lib2to3.pgen2.grammar", "Grammar.loads", b"N."),
    ("nturl2path", "url2pathname", "x"),
    ("antigravity", "x"),
)
"""What is called with which arguments; a nested list among these is a list."""

ORDERS = {
    "GLOBAL in text": b"cos\nsystem\n(X\x08\x00\x00\x00echo runtR.",
    "INST": b"(X\x08\x00\x00\x00echo runios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nX\x08\x00\x00\x00echo runo.",
    "EXT1": b"\x82\x01.",
    "EXT4": b"\x84\x01\x00\x00\x00.",
    "PERSID": b"Pos\n.",
    "BINPERSID": whole(plain("os"), b"Q"),
    "STRING": b"S'text'\n.",
    "INT in text": b"I1\n.",
    "LONG in text": b"L" + b"9" * 10_000 + b"L\n.",
    "FLOAT in text": b"F1.5\n.",
    "no order": b"\xff.",
    "protocol 6": b"\x80\x06N.",
    "nothing": b"",
    "no end": b"\x80\x04N",
    "an empty stack": b".",
    "a mark that is not there": b"t.",
    "a buffer that is not there": whole(b"\x97"),
    "a memory that is not there": whole(b"h\x07"),
    "a call of a value": whole(plain(3), EMPTY, REDUCE),
    "a call of a bomb": whole(doubled(60), EMPTY, REDUCE),
    "an object of a value": whole(plain("x"), EMPTY, NEWOBJ),
    "an object of a function": whole(name("builtins", "getattr"), EMPTY, NEWOBJ),
    "an object of a type": whole(name("builtins", "int"), EMPTY, NEWOBJ),
    "arguments that are none": whole(name("builtins", "complex"), plain([1]), REDUCE),
    "a state of a class": whole(name("uuid", "UUID"), NONE, plain({"__eq__": 1}), b"\x86", BUILD),
    "a state of an error's class": whole(name("skyward.errors", "TaskError"), NONE, plain({"x": 1}), b"\x86", BUILD),
    "a state of a function": whole(name("builtins", "getattr"), NONE, plain({"__code__": 1}), b"\x86", BUILD),
    "a state of a list": whole(plain([]), plain({"a": 1}), BUILD),
    "a state of a number": whole(plain(1), plain({"a": 1}), BUILD),
    "an attribute of a type by getattr": whole(
        call("builtins", "getattr", [name("builtins", "int")], "__subclasses__")
    ),
    "an attribute of a zone by getattr": whole(
        call("builtins", "getattr", [name("zoneinfo", "ZoneInfo")], "from_file")
    ),
    "another class of an error": whole(call("builtins", "KeyError", 1), plain({"__class__": 1}), BUILD),
    "an error of ours that is none": whole(call("skyward.errors", "_rebuild", [name("builtins", "KeyError")], "x", {})),
    "an error of ours of no text": whole(
        call("skyward.errors", "_rebuild", [name("skyward.errors", "TaskError")], 1, {})
    ),
    "a default that is a function": whole(call("collections", "defaultdict", [name("builtins", "getattr")])),
    "an ordered dict with methods": whole(
        name("collections", "OrderedDict"), EMPTY, REDUCE, plain({"items": 1}), BUILD
    ),
    "a namespace with a class": whole(name("types", "SimpleNamespace"), EMPTY, REDUCE, plain({"__class__": 1}), BUILD),
    "a number of a UUID": whole(name("uuid", "UUID"), EMPTY, NEWOBJ, plain({"int": -1}), BUILD),
    "items of a number": whole(plain(1), MARK, plain(1), b"e"),
    "items of a text": whole(plain("x"), MARK, plain(1), plain(2), b"u"),
    "members of a list": whole(plain([]), MARK, plain(1), b"\x90"),
    "a view of a bomb": whole(doubled(60), b"\x98"),
}
"""Pickles of one unusual order each."""

BOMBS = {
    "a key that takes for ever to hash": whole(b"}", doubled(60), NONE, b"s"),
    "keys that take for ever to hash": whole(b"}", MARK, doubled(60), NONE, b"u"),
    "a member that takes for ever to hash": whole(b"\x8f", MARK, doubled(60), b"\x90"),
    "a frozen member that takes for ever to hash": whole(MARK, doubled(60), b"\x91"),
    "a key as deep as C's stack": whole(b"}", nested(100_000), NONE, b"s"),
    "a default that takes for ever": whole(call("collections", "Counter", [b"}" + doubled(60) + b"Ns"])),
    "a slice that takes for ever": whole(b"}", call("builtins", "slice", [doubled(60)], None, None), NONE, b"s"),
    "a place with a bomb for its name": whole(
        b"}", name("skyward.model.instances.instance", "InstanceInfo"), EMPTY, NEWOBJ, b"}",
        text("hostname"), doubled(60), b"s", BUILD, NONE, b"s",
    ),
    "a unit that takes for ever": whole(
        name("numpy", "dtype"), plain(("M8", False, True)), REDUCE, MARK, plain(4), plain("<"), NONE, NONE, NONE,
        plain(-1), plain(-1), plain(0), b"}", MARK, doubled(60), plain(1), plain(1), plain(1), b"t\x86", b"t", BUILD,
    ),
    "a field that takes for ever": whole(
        name("numpy", "dtype"), plain(("V8", False, True)), REDUCE, MARK, plain(3), plain("|"), NONE, doubled(60),
        b"\x85}", plain(8), plain(1), plain(0), b"t", BUILD,
    ),
    "a column that takes for ever": whole(
        name("skyward.link.data.tables", "restore"), plain("array"), doubled(60), b"\x85\x86", REDUCE
    ),
    "an error that takes for ever to print": whole(call("builtins", "KeyError", [doubled(60)])),
    "an error that takes for ever to print, of lists": whole(
        call("builtins", "KeyError", [plain([1]) + b"q\x00" + b"]h\x00ah\x00aq\x00" * 60])
    ),
    "an error number that takes for ever": whole(call("builtins", "OSError", [doubled(60)], "x")),
    "a memory of 32 GiB": whole(NONE, b"r\xff\xff\xff\xff"),
    "bytes of an exabyte": whole(b"\x8e" + struct.pack("<Q", 1 << 60)),
    "an array of bytes of an exabyte": whole(b"\x96" + struct.pack("<Q", 1 << 60)),
    "text of an exabyte": whole(b"\x8d" + struct.pack("<Q", 1 << 60)),
    "a number of 4 GiB": whole(b"\x8b\xff\xff\xff\xff"),
    "a frame of an exabyte": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"N.",
    "lists in lists": whole(b"]" * 100_000),
    "marks in marks": b"\x80\x04" + MARK * 100_000 + b"t" * 100_000 + STOP,
}  # fmt: skip
"""Small pickles that exhaust the time or memory of the process that opens them, or crash it."""


def all_of_them() -> dict[str, bytes]:
    """Give every pickle by its name."""
    called = {
        f"{module}.{found}{args!r}": whole(call(module, found, *map(_pushed, args))) for module, found, *args in CALLED
    }
    return {**called, **ORDERS, **BOMBS}


def _pushed(value: Any) -> Any:
    return [plain(value)] if type(value) is list else value
