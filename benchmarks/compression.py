"""
Times ways of compressing what programs send, and says what each is worth on lines of several rates.

usage: python benchmarks/compression.py [--mib 8] [--shuffles]

A piece is 64 KiB, as one cell of the link carries.
Sending, compressing and decompressing go on side by side, so the slowest of the three is what all of it takes.
The table shows that time as a share of what the bytes take as they are.
lz4, zstandard, pandas and pillow are optional: what is missing is left out.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import pickle
import platform
import random
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skyward.link.cells import CHUNK

SEED = 17
RATES = (5, 20, 100, 1000)
"""Mbit/s of the lines."""


class Codec(NamedTuple):
    """
    A way of compressing: made for each content anew, because a stream keeps what came before.
    """

    name: str
    make: Callable[[], tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]


class Figure(NamedTuple):
    """
    What one way does with one content: the share that is left, and seconds for a byte at each end.
    """

    share: float
    packing: float
    unpacking: float

    def time(self, mbit: float) -> float:
        """
        Give the time on a line as a share of the time of the bytes as they are.
        """
        line = 8 / (mbit * 1e6)
        return max(self.share * line, self.packing, self.unpacking) / line


def source(size: int) -> bytes:
    """
    Join the sources of the standard library.
    """
    found = bytearray()
    for path in sorted(Path(json.__file__).parent.parent.glob("*.py")):
        found += path.read_bytes()
    return repeated(bytes(found), size)


def records(size: int) -> bytes:
    """
    Make JSON as services write it: names again and again, numbers, times, and some text.
    """
    random_ = random.Random(SEED)
    words = [f"w{random_.getrandbits(20):x}" for _ in range(4000)]
    rows: list[bytes] = []
    length = 0
    while length < size:
        row = {
            "id": random_.getrandbits(48),
            "user": f"user-{random_.randrange(100_000)}",
            "time": f"2026-03-{random_.randrange(1, 29):02}T{random_.randrange(24):02}:{random_.randrange(60):02}:00Z",
            "score": round(random_.gauss(0, 1), 6),
            "tags": random_.sample(("red", "green", "blue", "new", "old", "sold"), 2),
            "text": " ".join(random_.choices(words, k=12)),
            "active": random_.random() < 0.5,
        }
        rows.append(json.dumps(row).encode() + b"\n")
        length += len(rows[-1])
    return b"".join(rows)[:size]


def table(size: int) -> bytes:
    """
    Make a table as CSV: a number, a category, two floats, a date.
    """
    random_ = random.Random(SEED)
    rows: list[str] = []
    length = 0
    while length < size:
        rows.append(
            f"{len(rows)},{random_.choice(('north', 'south', 'east', 'west'))},{random_.gauss(100, 15):.2f},"
            f"{random_.random():.6f},2026-{random_.randrange(1, 13):02}-{random_.randrange(1, 29):02}\n"
        )
        length += len(rows[-1])
    return "".join(rows).encode()[:size]


def frame(size: int) -> bytes:
    """
    Pickle a frame of floats, ids, categories and text; without pandas, its columns.
    """
    return pickle.dumps(columns(size), 5)[:size]


def columns(size: int) -> Any:
    """
    Make that frame.
    """
    generator = np.random.default_rng(SEED)
    count = size // 40
    made: dict[str, Any] = {
        "id": np.arange(count),
        "price": generator.normal(100, 15, count).round(2),
        "amount": generator.integers(0, 50, count),
        "where": generator.choice(["north", "south", "east", "west"], count).astype(object),
        "name": np.array([f"user-{i}" for i in generator.integers(0, 100_000, count)], dtype=object),
    }
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return made
    return pandas.DataFrame(made)


def picture(size: int) -> bytes:
    """
    Encode pictures as JPEG; without pillow, bytes that are as hard to compress.
    """
    generator = np.random.default_rng(SEED)
    try:
        image = importlib.import_module("PIL.Image")
    except ImportError:
        return generator.bytes(size)
    found = bytearray()
    while len(found) < size:
        noise = generator.normal(0, 20, (512, 512, 3)) + np.linspace(0, 200, 512)[None, :, None]
        stream = io.BytesIO()
        image.fromarray(noise.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=85)
        found += stream.getvalue()
    return bytes(found[:size])


def repeated(data: bytes, size: int) -> bytes:
    """
    Fill a size, or cut to it.
    """
    return (data * (size // len(data) + 1))[:size]


def contents(size: int) -> Iterator[tuple[str, int, bytes]]:
    """
    Give what programs send: its name, the bytes of one of its numbers (1 of none), and the content.
    """
    generator = np.random.default_rng(SEED)
    yield "source", 1, source(size)
    yield "JSON", 1, records(size)
    yield "CSV", 1, table(size)
    yield "frame", 1, frame(size)
    yield "ids, sorted", 8, np.sort(generator.integers(0, 1 << 40, size // 8)).tobytes()
    yield "ids, small", 8, generator.integers(0, 50_000, size // 8).tobytes()
    yield "floats, rounded", 8, generator.normal(100, 15, size // 8).round(2).tobytes()
    yield "measured, float64", 8, np.cumsum(generator.normal(0, 1, size // 8)).tobytes()
    yield "weights, float32", 4, generator.normal(0, 0.02, size // 4).astype(np.float32).tobytes()
    yield "tokens, int32", 4, generator.zipf(1.3, size // 4).clip(0, 50_000).astype(np.int32).tobytes()
    yield "zeros and few", 8, (generator.random(size // 8) < 0.01).astype(np.float64).tobytes()
    yield "pictures", 1, picture(size)


def zlib_of(level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> Codec:
    """
    Compress each piece by itself.
    """

    def pack(data: bytes) -> bytes:
        packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
        return packer.compress(data) + packer.flush()

    name = f"zlib {level}" + {zlib.Z_HUFFMAN_ONLY: " huffman", zlib.Z_RLE: " rle"}.get(strategy, "")
    return Codec(name, lambda: (pack, lambda data: zlib.decompressobj(-15).decompress(data)))


def zlib_stream(level: int) -> Codec:
    """
    Compress pieces that remember those before them.
    """

    def make() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
        packer, unpacker = zlib.compressobj(level, zlib.DEFLATED, -15, 9), zlib.decompressobj(-15)
        return lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH), unpacker.decompress

    return Codec(f"zlib {level} stream", make)


def codecs() -> Iterator[Codec]:
    """
    Give the ways that this environment has.
    """
    yield Codec("as it is", lambda: (lambda data: data, lambda data: data))
    yield zlib_of(1, zlib.Z_HUFFMAN_ONLY)
    for level in (1, 3, 4, 5, 6):
        yield zlib_of(level)
    yield zlib_stream(1)
    yield zlib_stream(6)
    try:
        block = importlib.import_module("lz4.block")
    except ImportError:
        pass
    else:
        yield Codec("lz4 block", lambda: (block.compress, block.decompress))
        lz4 = importlib.import_module("lz4.frame")
        yield Codec("lz4 frame", lambda: (lz4.compress, lz4.decompress))
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        return

    def zstd(level: int) -> Codec:
        return Codec(
            f"zstd {level}",
            lambda: (zstandard.ZstdCompressor(level).compress, zstandard.ZstdDecompressor().decompress),
        )

    def stream(level: int) -> Codec:
        def make() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
            packer, unpacker = (
                zstandard.ZstdCompressor(level).compressobj(),
                zstandard.ZstdDecompressor().decompressobj(),
            )
            flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
            return lambda data: packer.compress(data) + packer.flush(flush), unpacker.decompress

        return Codec(f"zstd {level} stream", make)

    yield from (zstd(1), zstd(3), stream(1), stream(3))


def shuffled(codec: Codec, width: int) -> Codec:
    """
    Put the first bytes of all numbers before the second ones, by slices: no library is needed.
    """

    def make() -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
        pack, unpack = codec.make()

        def apart(data: bytes) -> bytes:
            return pack(b"".join([data[at::width] for at in range(width)]))

        def together(data: bytes) -> bytes:
            data = unpack(data)
            found, begin = bytearray(len(data)), 0
            for at in range(width):
                count = len(range(at, len(data), width))
                found[at::width] = data[begin : begin + count]
                begin += count
            return bytes(found)

        return apart, together

    return Codec(f"{codec.name} by {width}", make)


def figure(codec: Codec, content: bytes) -> Figure:
    """
    Compress a content piece by piece, and back.
    """
    pieces = [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]
    pack, unpack = codec.make()
    started = time.perf_counter()
    packed = [pack(piece) for piece in pieces]
    packing = time.perf_counter() - started
    started = time.perf_counter()
    back = [unpack(piece) for piece in packed]
    unpacking = time.perf_counter() - started
    assert back == pieces
    size = len(content)
    return Figure(sum(map(len, packed)) / size, packing / size, unpacking / size)


def main() -> None:
    """
    Print a table for each content.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=8, help="MiB of each content")
    parser.add_argument("--shuffles", action="store_true", help="shuffle by widths that do not fit, too")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, zlib {zlib.ZLIB_RUNTIME_VERSION}, pieces of {CHUNK >> 10} KiB\n")
    heads = ["content", "codec", "left", "MB/s in", "MB/s out", *(f"{rate} Mbit/s" for rate in RATES)]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name, width, content in contents(options.mib << 20):
        widths = (2, 4, 8) if options.shuffles else (width,) if width > 1 else ()
        ways = [*codecs()]
        ways += [
            shuffled(way, width)
            for width in widths
            for way in (zlib_of(1, zlib.Z_HUFFMAN_ONLY), zlib_of(1), zlib_of(6))
        ]
        for way in ways:
            found = figure(way, content)
            speeds = [f"{1e-6 / seconds:.0f}" for seconds in (found.packing, found.unpacking)]
            times = [f"{found.time(rate):.2f}" for rate in RATES]
            print("| " + " | ".join([name, way.name, f"{found.share:.3f}", *speeds, *times]) + " |", flush=True)


if __name__ == "__main__":
    main()
