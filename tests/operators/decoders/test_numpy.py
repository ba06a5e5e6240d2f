"""fn.decoders.numpy compared with NumPy's files and the real DALI."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dalify import fn, pipeline_def, types
from dalify.base.errors import DecodeError, LimitError, MixedBatchError
from dalify.formats.arrays.numpy_file import numpy_array, numpy_header
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali

DTYPES = ["bool", *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)), "float16", "float64"]


def encoded(array: np.ndarray, version: tuple[int, int] | None = None) -> np.ndarray:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version)
    return np.frombuffer(file.getvalue(), np.uint8)


@given(
    arrays.arrays(st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)),
    st.sampled_from("CF"),
    st.sampled_from("<>"),
    st.integers(0, 3),
)
def test_what_numpy_wrote(array, order, byte_order, shift):
    stored = np.array(array, array.dtype.newbyteorder(byte_order), order=order)
    file = encoded(stored)
    moved = np.concatenate([np.zeros(shift, np.uint8), file])[shift:]  # not every file is at a multiple of 8 bytes
    got = numpy_array(moved, numpy_header(moved))
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.dtype.isnative
    assert got.flags.c_contiguous
    assert got.flags.aligned
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compared_with_dali(dtype):
    values = (np.random.default_rng(1).normal(0, 100, (2, 3, 5)) if dtype != "bool" else np.ones((2, 3, 5))).astype(
        dtype
    )
    got = run_dalify("decoders.numpy", list(map(encoded, values)))
    for sample, theirs in zip(got, run_dali("decoders.numpy", list(map(encoded, values))), strict=True):
        assert sample.dtype == theirs.dtype
        np.testing.assert_array_equal(sample, theirs)


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT16, types.FLOAT16, types.BOOL])
def test_conversion_compared_with_dali(dtype):
    files = [encoded(np.array([-1.5, 0.3, 0.5, 2.5, 300, 1e9, np.nan])), encoded(np.array([[-1, 300]]).reshape(-1))]
    for sample, theirs in zip(
        run_dalify("decoders.numpy", files, dtype=dtype),
        run_dali("decoders.numpy", files, dtype=dtype),
        strict=True,
    ):
        np.testing.assert_array_equal(sample, theirs)


def test_a_file_that_is_a_column_of_an_array():
    values = np.arange(12.0).reshape(2, 6)
    columns = [np.stack([encoded(value)] * 3, axis=1) for value in values]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def graph():
        return fn.decoders.numpy(fn.external_source(source=lambda: columns)[:, 1])

    with graph() as pipe:
        np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), values)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(version):
    array = np.arange(5.0)
    np.testing.assert_array_equal(run_dalify("decoders.numpy", [encoded(array, version)])[0], array)


@given(st.data())
def test_damage_is_reported(data):
    file = encoded(np.arange(12.0).reshape(3, 4)).copy()
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(0, 70))] = data.draw(st.integers(0, 255))
    file = file[: data.draw(st.integers(0, len(file)))]
    try:
        header = numpy_header(file)
    except DecodeError:
        return
    assert numpy_array(file, header).size * header.dtype.itemsize <= len(file)


def test_never_unpickles():
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DecodeError, match="numbers"):
        run_dalify("decoders.numpy", [np.frombuffer(file.getvalue(), np.uint8)])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (encoded(np.arange(3.0))[:-3], "149 bytes"),
        (encoded(np.arange(3.0))[:30], "ends within its header"),
        (np.arange(100, dtype=np.uint8), "not a NumPy file"),
        (encoded(np.array(["a"])), "<U1"),
        (encoded(np.array([1j])), "c16"),
    ],
)
def test_what_cannot_be_decoded(file, message):
    with pytest.raises(DecodeError, match=message) as caught:
        run_dalify("decoders.numpy", [encoded(np.arange(3.0)), file])
    assert caught.value.sample == 1


def file_of(shape: str, description: str = "'<f4'", body: bytes = b"1234") -> np.ndarray[Any, Any]:
    """Return a file with a header as written."""
    header = f"{{'descr': {description}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return np.frombuffer(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + body, np.uint8)


@pytest.mark.parametrize(
    ("file", "kind", "message"),
    [
        (file_of("(0,1" + "0" * 30 + ")", body=b""), DecodeError, "invalid shape"),
        (file_of("(0,1" + "0" * 17 + ")", body=b""), LimitError, "max_sample_bytes"),
        (file_of("(1048576,1048576)"), LimitError, "max_sample_bytes"),
        (file_of("(" + "1," * 70 + ")"), LimitError, "70 dimensions.*max_dimensions"),
        (file_of("(1,)", "'(2147483648,)f4'"), DecodeError, "dtype"),
        (file_of("(1,)", "'i4,('"), DecodeError, "dtype"),
        (file_of("(1,)", "'f1'"), DecodeError, "dtype"),
        (file_of("(1,)", "[('a', '<f4'), ('b', '<i4')]"), DecodeError, "dtype"),
        (file_of("(1,)", "'|S99999999999999999999'"), DecodeError, "dtype"),
        (file_of("(0x" + "f" * 60000 + ",)"), DecodeError, "header of 60"),
        (file_of("(0x" + "f" * 6000 + ",)"), DecodeError, "invalid shape"),
        (file_of("(" * 9000), DecodeError, "damaged|invalid shape"),
        (file_of("(1,)", "'" + "\\d" * 4000 + "'"), DecodeError, "dtype"),
        (file_of("(" + "," * 9000 + ")"), DecodeError, "invalid shape"),
        (file_of("(1,)", "3"), DecodeError, "dtype 3"),
        (file_of("(1"), DecodeError, "damaged|invalid shape"),
        (file_of("(-1,)"), DecodeError, "invalid shape"),
        (file_of("(1.5,)"), DecodeError, "invalid shape"),
        (file_of("(1)"), DecodeError, "invalid shape"),
        (file_of("None"), DecodeError, "invalid shape"),
    ],
)
def test_headers_that_ask_for_too_much(file, kind, message):
    with pytest.raises(kind, match=message) as caught:
        run_dalify("decoders.numpy", [encoded(np.arange(3.0, dtype=np.float32)), file])
    assert caught.value.sample == 1


@pytest.mark.parametrize("spaces", [b"", b"     "])
def test_headers_of_other_writers(spaces):
    text = b"{ \"shape\" : (2L , 3L),\"fortran_order\":True, 'descr':'<i2'" + spaces + b"}\n"
    body = np.arange(6, dtype="<i2").tobytes()
    file = np.frombuffer(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body, np.uint8)
    np.testing.assert_array_equal(numpy_array(file, numpy_header(file)), np.arange(6).reshape(3, 2).T)


@pytest.mark.parametrize("dtype", [{}, {"dtype": types.INT32}])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_damaged_file_fails_one_sample(tmp_path, on_error, dtype):
    for number in range(6):
        np.save(tmp_path / f"{number}.npy", np.full((3, 4), number + 1.0))
    (tmp_path / "1.npy").write_bytes(file_of("(1048576,1048576)").tobytes())

    @pipeline_def(batch_size=3, num_threads=1, on_error=on_error)
    def graph():
        files, _ = fn.readers.file(files=[str(tmp_path / f"{number}.npy") for number in range(6)])
        return fn.decoders.numpy(files, **dtype)

    pipe = graph()
    (arrays,) = pipe.run()
    assert [int(np.asarray(arrays.at(n)).max()) for n in (0, 2)] == [1, 3]
    assert np.asarray(arrays.at(1)).shape == (3, 4)
    assert np.asarray(arrays.at(1)).any() == (on_error == "skip")
    (bad,) = pipe.bad_samples()
    assert bad.error.startswith("LimitError")
    assert bad.source.endswith("1.npy")


def test_files_must_agree():
    one = encoded(np.arange(3.0))
    with pytest.raises(MixedBatchError, match=r"int64.*float64(?s:.*)dtype=types\.FLOAT"):
        run_dalify("decoders.numpy", [one, encoded(np.arange(3))])
    with pytest.raises(MixedBatchError, match=r"2 dimensions, shape .1, 3., but the first sample of the batch has 1"):
        run_dalify("decoders.numpy", [one, encoded(np.ones((1, 3)))])
    both: Any = run_dalify("decoders.numpy", [one, encoded(np.arange(3))], dtype=types.FLOAT)
    np.testing.assert_array_equal(both[1], [0, 1, 2])
