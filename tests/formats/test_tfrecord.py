"""TFRecord files and their tf.Example records, compared with independent writers and readers."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify import tfrecord
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError
from dalify.formats.records.tf_example import ExampleParser, Features, features_of
from dalify.formats.records.tfrecord import payload, records_of, scan, write_index
from tests.helpers.containers import example, field, varint, write_tfrecord

INT, FLOAT, TEXT = tfrecord.int64, tfrecord.float32, tfrecord.string


def parsed(data: bytes, **features: Any) -> list[np.ndarray]:
    parser = ExampleParser(features_of(Features.from_user(features)))
    return list(parser(np.frombuffer(data, np.uint8)))


def test_lists_of_all_types():
    data = example({"text": b"abc", "ints": [1, -2, 2**40, -(2**63), 2**63 - 1], "floats": [1.5, -2.25], "other": [3]})
    text, ints, floats = parsed(
        data,
        text=tfrecord.FixedLenFeature([], TEXT, ""),
        ints=tfrecord.VarLenFeature(INT, 0),
        floats=tfrecord.FixedLenFeature([2, 1], FLOAT, 0.0),
    )
    assert text.tobytes() == b"abc"
    np.testing.assert_array_equal(ints, np.array([1, -2, 2**40, -(2**63), 2**63 - 1]))
    np.testing.assert_array_equal(floats, np.array([[1.5], [-2.25]], np.float32))
    assert ints.dtype == np.int64
    assert floats.dtype == np.float32


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.lists(st.floats(width=32, allow_nan=False), min_size=1)
)
def test_packing_and_unpacking_gives_the_input(ints, floats):
    for packed in (True, False):
        found = parsed(
            example({"i": ints, "f": floats}, packed=packed),
            i=tfrecord.VarLenFeature(INT, 0),
            f=tfrecord.VarLenFeature(FLOAT, 0.0),
        )
        assert found[0].tolist() == ints
        assert found[1].tolist() == floats


def test_the_last_of_equal_names_is_used():
    data = example({"a": [1]}) + example({"a": [2]})
    assert parsed(data, a=tfrecord.FixedLenFeature([1], INT, 0))[0].tolist() == [2]


def test_unknown_fields_are_passed_over():
    data = field(9, 4) + field(12, 1.5) + field(3, b"x") + varint(8 << 3 | 1) + bytes(8) + example({"a": [7]})
    assert parsed(data, a=tfrecord.FixedLenFeature([1], INT, 0))[0].tolist() == [7]


def test_absent_features_are_empty():
    found = parsed(
        example({"a": [7], "none": []}),
        text=tfrecord.FixedLenFeature([], TEXT, ""),
        fixed=tfrecord.FixedLenFeature([3, 2], INT, 0),
        variable=tfrecord.VarLenFeature([2], FLOAT, 0.0),
        none=tfrecord.FixedLenFeature([1], INT, 0),
    )
    assert [item.shape for item in found] == [(0,), (0, 2), (0, 2), (0,)]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (tfrecord.FixedLenFeature([2], INT, 0), "needs 2"),
        (tfrecord.FixedLenFeature([4], INT, 0), "needs 4"),
        (tfrecord.FixedLenFeature([3], FLOAT, 0.0), "has integers, not floats"),
        (tfrecord.FixedLenFeature([], TEXT, ""), "has integers, not strings"),
        (tfrecord.VarLenFeature([2], INT, 0), "are not divisible"),
        (tfrecord.VarLenFeature([0], INT, 0), "are not divisible"),
    ],
)
def test_features_that_differ_from_their_declaration(feature, message):
    with pytest.raises(ReaderError, match=message):
        parsed(example({"a": [1, 2, 3]}), a=feature)


def test_absent_number():
    with pytest.raises(ReaderError, match="cannot be empty"):
        parsed(b"", a=tfrecord.FixedLenFeature([], INT, 0))


def test_several_strings():
    with pytest.raises(ReaderError, match="several strings"):
        parsed(example({"a": [b"x", b"y"]}), a=tfrecord.FixedLenFeature([], TEXT, ""))


@given(st.binary(max_size=60), st.integers(0, 100), st.integers(0, 255))
def test_damaged_records_are_reported_and_nothing_else_is_read(tail, place, byte):
    """Any bytes result in arrays or an error of dalify; the compiled search does not read beyond the bytes."""
    data = bytearray(example({"a": [1, 2, 300], "t": b"text", "f": [1.0, 2.0]}) + tail)
    data[place % len(data)] = byte
    features = {
        "a": tfrecord.VarLenFeature(INT, 0),
        "t": tfrecord.FixedLenFeature([], TEXT, ""),
        "f": tfrecord.VarLenFeature(FLOAT, 0.0),
    }
    for stop in (len(data), place % len(data)):
        try:
            found = parsed(bytes(data[:stop]), **features)
        except ReaderError:
            continue
        assert len(found) == 3


def test_lengths_beyond_all_memory():
    for size in (2**31, 2**63, 2**64 - 1):
        with pytest.raises(ReaderError):
            parsed(varint(1 << 3 | 2) + varint(size) + b"xx", a=tfrecord.VarLenFeature(INT, 0))


@pytest.mark.parametrize(
    ("features", "error"), [({}, ArgumentValueError), ([1], ArgumentTypeError), ({"a": 1}, ArgumentTypeError)]
)
def test_invalid_features(features, error):
    with pytest.raises(error):
        Features.from_user(features)


def test_declarations():
    assert tfrecord.VarLenFeature([2], INT, 0) == tfrecord.VarLenFeature(INT, 0, partial_shape=[2])
    for call in (
        lambda: tfrecord.VarLenFeature(),
        lambda: tfrecord.VarLenFeature(INT, 0, 1),
        lambda: tfrecord.VarLenFeature(INT, 0, shape=1),
        lambda: tfrecord.FixedLenFeature([], "string", ""),
        lambda: tfrecord.FixedLenFeature([1.5], INT, 0),
        lambda: tfrecord.VarLenFeature(INT),
        lambda: tfrecord.VarLenFeature([2], INT),
    ):
        with pytest.raises(ArgumentTypeError):
            call()
    with pytest.raises(
        ArgumentTypeError,
        match=r"shape must be a list of integers; got 4\.\n  .*test_tfrecord\.py.*(\n.*)*\n  Write shape=\[4\]",
    ):
        tfrecord.FixedLenFeature(4, INT, 0)
    with pytest.raises(ArgumentTypeError, match=r"partial_shape must be a list of integers; got 2"):
        tfrecord.VarLenFeature(2, INT, 0)
    assert tfrecord.FixedLenFeature(np.array([4]), INT, 0) == tfrecord.FixedLenFeature([4], INT, 0)
    with pytest.raises(ArgumentValueError, match="negative"):
        tfrecord.FixedLenFeature([-1], INT, 0)


@pytest.mark.parametrize(
    ("dtype", "default", "message"),
    [
        (INT, 1.0, "of type tfrecord.int64 must be of type int; got 1.0"),
        (INT, "a", "of type int; got 'a'"),
        (INT, [1], r"of type int; got \[1\]"),
        (INT, None, "of type int; got None"),
        (FLOAT, 1, "of type tfrecord.float32 must be of type float; got 1"),
        (FLOAT, np.float32(1), "of type float; got"),
        (TEXT, 1, "of type tfrecord.string must be of type str; got 1"),
        (TEXT, b"a", "of type str; got b'a'"),
    ],
)
def test_defaults_of_another_type(dtype, default, message):
    for declare in (
        lambda: tfrecord.FixedLenFeature([1], dtype, default),
        lambda: tfrecord.VarLenFeature(dtype, default),
    ):
        with pytest.raises(ArgumentTypeError, match=message):
            declare()


# -- files -------------------------------------------------------------------------------------------------------------


def test_scan_and_index_find_the_same(tmp_path: Path):
    payloads = [b"", b"a" * 1000, b"xyz"]
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.idx"
    write_tfrecord(path, payloads, index)
    assert write_index(str(path), str(tmp_path / "own.idx")) == 3
    assert (tmp_path / "own.idx").read_text() == index.read_text()
    for records in (records_of([str(path)] * 2, None, None), records_of([str(path)] * 2, [str(index)] * 2, None)):
        assert [payload(record, True).tobytes() for record in records] == payloads * 2
        assert pickle.loads(pickle.dumps(records[4])).read().tobytes() == records[4].read().tobytes()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
def test_check_sums(tmp_path: Path, size: int):
    path = tmp_path / "a"
    write_tfrecord(path, [bytes(range(256)) * 4])
    write_tfrecord(path, [(bytes(range(256)) * 4)[:size]])
    (record,) = records_of([str(path)], None, None)
    payload(record, True)
    for place in range(0, size + 16, max(1, size // 5)):
        data = bytearray(path.read_bytes())
        data[place] ^= 16
        damaged = tmp_path / "damaged"
        damaged.write_bytes(data)
        with pytest.raises(ReaderError):
            payload(records_of([str(damaged)], None, None)[0], True)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty"),
        (b"short", "is truncated"),
        (b"\x1f\x8b" * 50, "(?s)is truncated.*Decompress it"),
        (struct.pack("<QI", 2**63, 0) + b"xx", "is truncated"),
    ],
)
def test_damaged_files(tmp_path: Path, contents: bytes, message: str):
    path = tmp_path / "a"
    path.write_bytes(contents)
    with pytest.raises(ReaderError, match=message):
        scan(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0 x\n", "expected 2 integers"),
        ("0 10 3\n", "expected 2 integers"),
        ("0 4\n", "at least 16 bytes"),
        ("0 100000\n", "ends before"),
        ("1 24\n", "but the index specifies"),
        ("99999999999999999999 20\n", "index|ends before"),
    ],
)
def test_damaged_indices(tmp_path: Path, text: str, message: str):
    path, index = tmp_path / "a", tmp_path / "a.idx"
    write_tfrecord(path, [b"some text"], index)
    index.write_text(text)
    with pytest.raises(ReaderError, match=message):
        payload(records_of([str(path)], [str(index)], None)[0], False)


def test_an_index_of_the_first_records(tmp_path: Path):
    """A truncated index is a warning: DALI accepts an index of a part of a file."""
    path, index = tmp_path / "a", tmp_path / "a.idx"
    write_tfrecord(path, [b"one", b"two", b"three"], index)
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(lines[:2]))
    with pytest.warns(UserWarning, match=r"a\.idx' ends at byte 38 of .*a', which has 59 bytes.*tools\.tfrecord2idx"):
        records = records_of([str(path)], [str(index)], None)
    assert [payload(record, True).tobytes() for record in records] == [b"one", b"two"]
    index.write_text("".join(lines[::-2]))  # the last record is in the index
    assert len(records_of([str(path)], [str(index)], None)) == 2


def test_byte_order_marks_of_indices(tmp_path: Path):
    path, index = tmp_path / "a", tmp_path / "a.idx"
    write_tfrecord(path, [b"one"], index)
    text = index.read_text()
    index.write_text(text, encoding="utf-8-sig")
    assert len(records_of([str(path)], [str(index)], None)) == 1
    index.write_text(text, encoding="utf-16")
    with pytest.raises(ReaderError, match=r"(?s)TFRecord index .*a\.idx' is encoded in UTF-16\.\n.*Save it in UTF-8"):
        records_of([str(path)], [str(index)], None)


def test_absent_files(tmp_path: Path):
    for index in (None, [str(tmp_path / "no.idx")]):
        with pytest.raises(ReaderError, match=r"cannot open|cannot read"):
            records_of([str(tmp_path / "no")], index, None)
    with pytest.raises(ArgumentValueError, match="one per file"):
        records_of([str(tmp_path / "no")], ["a", "b"], None)
    with pytest.raises(ArgumentValueError, match="index_path has 0 paths for 1 file"):
        records_of([str(tmp_path / "no")], [], None)


def test_compared_with_the_tfrecord_package(tmp_path: Path):
    """The package `tfrecord` writes with Google's protobuf."""
    package = pytest.importorskip("tfrecord", reason="an independent writer of TFRecord files")
    path = tmp_path / "a.tfrecord"
    writer = package.TFRecordWriter(str(path))
    writer.write({"image": (b"bytes", "byte"), "label": (7, "int"), "box": ([1.0, 2.5], "float")})
    writer.write({"image": (b"", "byte"), "label": (-1, "int"), "box": ([0.5] * 100, "float")})
    writer.close()
    features = {
        "box": tfrecord.VarLenFeature(FLOAT, 0.0),
        "image": tfrecord.FixedLenFeature([], TEXT, ""),
        "label": tfrecord.FixedLenFeature([], INT, 0),
    }
    parser = ExampleParser(features_of(Features.from_user(features)))
    found = [parser(payload(record, True)) for record in records_of([str(path)], None, None)]
    assert [box.tolist() for box, _, _ in found] == [[1.0, 2.5], [0.5] * 100]
    assert [image.tobytes() for _, image, _ in found] == [b"bytes", b""]
    assert [int(label) for _, _, label in found] == [7, -1]
