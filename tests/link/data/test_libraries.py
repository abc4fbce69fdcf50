"""Tensors, tables and Arrow's arrays come out as they went in, in parts that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyward.link.data.maker import Refused
from skyward.link.payload import load
from skyward.link.payload_making import dump
from skyward.model.spec.trust_setting import DATA

pytestmark = pytest.mark.frameworks


def trip(value: Any) -> Any:
    payload = dump(value, data=True)
    payload.trust = DATA
    return load(payload)


def test_tensors_come_out_as_they_went_in() -> None:
    """Of every type of number and layout of memory; large ones are not copied."""
    import torch

    weights = torch.randn(4, requires_grad=True)
    for tensor in (
        torch.arange(5),
        torch.randn(3, 4).t(),
        torch.tensor(1.5),
        torch.zeros(0, 3),
        weights,
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor([True]),
        torch.randn(300, 300),
        torch.tensor([1 + 2j]).conj(),
        torch.nn.Parameter(torch.ones(2)),
    ):
        found = trip(tensor)
        assert (type(tensor), tensor.dtype, tensor.shape) == (type(found), found.dtype, found.shape)
        assert tensor.requires_grad == found.requires_grad
        assert torch.equal(tensor, found)
    assert [torch.float32, torch.device("cuda", 1), torch.Size([2])] == trip(
        [torch.float32, torch.device("cuda", 1), torch.Size([2])]
    )


def test_state_dicts_come_out_as_they_went_in() -> None:
    """Those of models and optimisers; a model itself is code."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimiser.step()
    state = trip({"model": model.state_dict(), "optimiser": optimiser.state_dict()})
    assert model.state_dict()._metadata == state["model"]._metadata
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    with pytest.raises(Refused, match=r"^torch\."):
        trip(model)


def test_a_tensor_of_no_memory_is_refused() -> None:
    """It has a shape and no numbers."""
    import torch

    with pytest.raises(TypeError, match="has no numbers"):
        dump(torch.empty(2, device="meta"), data=True)


@pytest.mark.parametrize("layout", ["sparse", "quantized"])
def test_a_tensor_whose_memory_is_not_plain_says_what_to_do(layout: str) -> None:
    """On the node, where it can still be changed."""
    import torch

    tensor = (
        torch.eye(2).to_sparse()
        if layout == "sparse"
        else torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
    )
    with pytest.raises(TypeError, match=r"return it as tensor\.to_dense\(\)"):
        dump(tensor, data=True)


@pytest.mark.parametrize(
    "parts",
    [
        (b"", "load", (0,), False, False),
        (b"", "float32", (10**12,), False, False),
        (b"1234", "float32", (2,), False, False),
        (b"1234", "float32", (-1,), False, False),
        (b"1234", "float32", (1,), 1, False),
        ([], "float32", (0,), False, False),
        (b"1234", "int32", (1,), True, False),
    ],
)
def test_a_tensor_of_parts_that_do_not_fit_is_refused(parts: Any) -> None:
    """Before memory is taken for it."""
    from skyward.link.data.tensors import restore

    with pytest.raises((ValueError, RuntimeError)):
        restore(*parts)


def frame() -> Any:
    import pandas as pd
    import pyarrow as pa

    made = pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "part": [1.5, 2, 3],
            "other": [4.5, 5, 6],
            "object": [[1], {"a": 1}, (2,)],
            "text": ["x", None, "z"],
            "kind": pd.Categorical(["u", "v", "u"]),
            "zoned": pd.date_range("2026", periods=3, tz="Europe/Berlin"),
            "missing": pd.array([1, None, 3], dtype="Int64"),
            "yes": pd.array([True, None, False], dtype="boolean"),
            "half": pd.array([1.5, None, 3], dtype="Float32"),
            "month": pd.period_range("2026", periods=3, freq="M"),
            "between": pd.interval_range(0, 3),
            "string": pd.array(["a", None, "c"], dtype="string"),
            "span": pd.to_timedelta([1, 2, 3], unit="s"),
            "arrow": pd.array([1, 2, None], dtype=pd.ArrowDtype(pa.int64())),
        },
        index=pd.date_range("2026", periods=3, freq="D"),
    )
    made.attrs["source"] = "test"
    return made


def test_frames_come_out_as_they_went_in() -> None:
    """With every type of column, their indices and attributes."""
    import pandas as pd

    whole = frame()
    for sent in (
        whole,
        whole[["part", "other"]],
        whole.set_index(["whole", "text"]),
        whole[["whole", "part"]].T,
        pd.DataFrame(),
        pd.DataFrame(index=[1, 2]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({("x", "y"): [1]}),
        whole.describe(),
        whole.groupby("kind", observed=True)[["part"]].agg(["mean", "sum"]),
    ):
        found = trip(sent)
        pd.testing.assert_frame_equal(sent, found)
        assert sent.attrs == found.attrs
    for series in (whole["part"], whole["zoned"], pd.Series([1], name=("a", 1))):
        pd.testing.assert_series_equal(series, trip(series))


def test_a_large_frame_is_not_copied() -> None:
    """Its columns of one type lie where they came."""
    import pandas as pd

    array = trip(pd.DataFrame(np.random.default_rng(1).random((100_000, 4)))).to_numpy()
    while isinstance(array, np.ndarray):
        array = array.base
    assert isinstance(array, memoryview)


def test_indices_and_scalars_come_out_as_they_went_in() -> None:
    """Of every kind."""
    import pandas as pd

    days = pd.date_range("2026", periods=3, freq="D")
    for index in (
        pd.RangeIndex(3, name="r"),
        pd.Index(["a", "b"]),
        pd.MultiIndex.from_product([[1, 2], ["a", "b"]], names=["x", None]),
        days,
        days.tz_localize("UTC"),
        pd.CategoricalIndex(["a"]),
        pd.period_range("2026", periods=2, freq="Q"),
        pd.interval_range(0, 2),
        pd.timedelta_range("1s", periods=2),
        pd.Index([("a", 1)], tupleize_cols=False),
        pd.Index([], dtype=object),
    ):
        pd.testing.assert_index_equal(index, trip(index))
        assert getattr(index, "freq", None) == getattr(trip(index), "freq", None)
    for scalar in (
        pd.Timestamp("2026"),
        pd.Timestamp("2026", tz="Europe/Berlin"),
        pd.Timedelta("3s"),
        pd.Period("2026-01", "M"),
        pd.Interval(1, 2),
    ):
        assert (type(scalar), scalar) == (type(trip(scalar)), trip(scalar))
    assert trip([pd.NaT, pd.NA]) == [pd.NaT, pd.NA] or (trip(pd.NaT) is pd.NaT and trip(pd.NA) is pd.NA)
    with pytest.raises(TypeError, match="does not travel as data"):
        dump(pd.arrays.SparseArray([0, 1]), data=True)


def bomb() -> Any:
    made: Any = ()
    for _ in range(60):
        made = (made, made)
    return made


@pytest.mark.parametrize("kind", ["index", "series", "range", "interval", "levels", "categories"])
def test_names_that_take_for_ever_to_hash_are_refused(kind: str) -> None:
    """Pandas hashes what rows and columns are called."""
    import pandas as pd

    from skyward.link.data.tables import restore

    objects = np.empty(2, object)
    objects[:] = [bomb(), 1]
    parts = {
        "index": lambda: restore("index", objects, None, None),
        "series": lambda: restore("series", bomb(), pd.RangeIndex(1), np.zeros(1), {}),
        "range": lambda: restore("range", 0, 1, 1, bomb()),
        "interval": lambda: restore("interval", bomb(), 1, "left"),
        "levels": lambda: restore("multi", [restore("index", objects, None, None)], [np.zeros(1, int)], [None]),
        "categories": lambda: restore(
            "array", ("categorical", np.zeros(1, "i1"), restore("index", objects, None, None), False)
        ),
    }
    with pytest.raises(ValueError, match="a tuple as a name"):
        parts[kind]()


@pytest.mark.parametrize(
    "parts",
    [
        ("nothing",),
        ("frame", 1, 2, 3, {}),
        ("array", ("texts", np.zeros(1), "python", "NA")),
        ("array", ("no", 1)),
        ("index", ("categorical", [1], 2, True), None, None),
        ("multi", 1, 2, 3),
        ("timestamp", "now", None),
        ("period", 1.5, "M"),
        ("series", "x", 1, np.zeros(1), {}),
        ("array", ("periods", np.zeros(1, int), "x" * 100)),
    ],
)
def test_tables_of_parts_that_are_none_are_refused(parts: Any) -> None:
    """Before pandas is asked."""
    from skyward.link.data.tables import restore

    with pytest.raises((ValueError, TypeError)):
        restore(*parts)


def test_arrows_values_come_out_as_they_went_in() -> None:
    """Tables, batches, arrays, scalars and schemas."""
    import pyarrow as pa

    table = pa.table(
        {
            "a": [1, 2],
            "b": ["x", None],
            "c": [[1], [2, 3]],
            "d": pa.array(["u", "v"]).dictionary_encode(),
            "e": [{"f": 1}, None],
        }
    )
    for value in (
        table,
        table.to_batches()[0],
        table["a"],
        pa.array([1, None]),
        table.schema,
        pa.scalar(5),
        pa.chunked_array([[1], [2]]),
        pa.table({}),
        pa.array([], pa.string()),
    ):
        found = trip(value)
        assert type(value) is type(found)
        assert value.equals(found)


def test_a_stream_of_arrows_that_lies_is_refused() -> None:
    """Compressed ones that could be a thousand times as large, torn ones, and arrays that point over their ends."""
    import pyarrow as pa

    from skyward.link.data.arrow import restore

    table = pa.table({"a": ["x" * 100] * 100})
    for compression in ("zstd", "lz4"):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table)
        with pytest.raises(Refused, match="compressed"):
            restore("Table", sink.getvalue().to_pybytes())
    good = dump(table, data=True).inline
    whole = trip(table)
    assert table.equals(whole)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = bytearray(sink.getvalue().to_pybytes())
    at = stream.index((100).to_bytes(4, "little") + (200).to_bytes(4, "little"))
    stream[at : at + 4] = (1 << 30).to_bytes(4, "little")
    for lie in (bytes(stream), bytes(stream[:-200]), b"", b"x" * 100):
        with pytest.raises((ValueError, OSError)):
            restore("Table", lie)
    assert good
