"""fn.decoders.inflate on blocks packed here, after the description of the format."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError, DecodeError, IndexingError, LayoutError, LimitError
from dalify.codecs.lz4 import inflate_lz4
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each


def deflated(data: bytes, window: int = 64) -> bytes:
    """Pack greedily: at each place the longest repetition from the window, unless it is shorter than 4."""
    out = bytearray()
    literals = bytearray()
    place = 0

    def sequence(match: int, distance: int) -> None:
        lengths = [len(literals), max(0, match - 4)]
        out.append(min(lengths[0], 15) << 4 | (min(lengths[1], 15) if match else 0))
        _more(lengths[0])
        out.extend(literals)
        if match:
            out.extend(distance.to_bytes(2, "little"))
            _more(lengths[1])
        literals.clear()

    def _more(length: int) -> None:
        if length >= 15:
            out.extend([255] * ((length - 15) // 255) + [(length - 15) % 255])

    while place < len(data):
        best = (0, 0)
        for distance in range(1, min(window, place) + 1):
            match = 0
            while place + match < len(data) - 5 and data[place + match] == data[place + match - distance]:
                match += 1
            best = max(best, (match, distance))
        if best[0] >= 4:
            sequence(*best)
            place += best[0]
        else:
            literals.append(data[place])
            place += 1
    sequence(0, 0)
    return bytes(out)


def block(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(deflated(array.tobytes()), np.uint8)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=9), st.integers(1, 90)), max_size=12))
def test_unpacking_gives_the_packed_values(parts):
    data = b"".join(part * times for part, times in parts)
    out = np.empty(len(data), np.uint8)
    inflate_lz4(out, np.frombuffer(deflated(data), np.uint8))
    assert out.tobytes() == data


@given(st.binary(max_size=60), st.integers(0, 300))
def test_never_leaves_its_arrays(data, room):
    guarded = np.full(room + 64, 171, np.uint8)
    with contextlib.suppress(DecodeError):
        inflate_lz4(guarded[32 : 32 + room], np.frombuffer(data, np.uint8))
    assert (guarded[:32] == 171).all()
    assert (guarded[32 + room :] == 171).all()


@given(st.data())
def test_damage_is_reported_or_harmless(data):
    packed = bytearray(deflated(b"abcabcabcabcabcdefghijklmnopqrstu" * 4))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    out = np.empty(132, np.uint8)
    with contextlib.suppress(DecodeError):
        inflate_lz4(out, np.frombuffer(bytes(packed[: data.draw(st.integers(0, len(packed)))]), np.uint8))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_types_and_shapes(dtype, device):
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 4, shape).astype(dtype) for shape in [(3, 5), (7, 2), (3, 5)]]
    got = run_dalify(
        "decoders.inflate",
        list(map(block, arrays)),
        shape=Each([np.array(array.shape, np.int32) for array in arrays]),
        dtype=getattr(types, dtype.upper().replace("FLOAT32", "FLOAT")),
        layout="HW",
        device=device,
    )
    for sample, array in zip(got, arrays, strict=True):
        assert sample.dtype == array.dtype
        np.testing.assert_array_equal(sample, array)


@pytest.mark.parametrize("given_by", ["sizes", "offsets", "both"])
def test_chunks(given_by):
    rng = np.random.default_rng(4)
    sequences = [rng.integers(0, 5, (count, 4, 6, 3), dtype=np.uint8) for count in (3, 1, 3)]
    packed = [[deflated(frame.tobytes()) for frame in sequence] for sequence in sequences]
    sizes = [np.array([len(chunk) for chunk in chunks], np.int32) for chunks in packed]
    offsets = [np.concatenate([[0], np.cumsum(each)[:-1]]).astype(np.int32) for each in sizes]
    arguments = {}
    if given_by != "offsets":
        arguments["chunk_sizes"] = Each(sizes)
    if given_by != "sizes":
        arguments["chunk_offsets"] = Each(offsets)
    inputs = [np.frombuffer(b"".join(chunks), np.uint8) for chunks in packed]
    got = run_dalify("decoders.inflate", inputs, shape=[4, 6, 3], layout="HWC", **arguments)
    for sample, sequence in zip(got, sequences, strict=True):
        np.testing.assert_array_equal(sample, sequence)


HELLO = np.frombuffer(b"\x50hello\x50world", np.uint8)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"shape": [4]}, DecodeError, "more than the 4 bytes"),
        ({"shape": [6], "chunk_sizes": [6]}, DecodeError, "contains 5 bytes"),
        ({"shape": [5], "chunk_sizes": [7, 6]}, IndexingError, "chunk 1 spans the bytes 7 to 13"),
        ({"shape": [5], "chunk_offsets": [-1]}, IndexingError, "chunk 0"),
        ({"shape": [5], "chunk_offsets": [0, 6], "chunk_sizes": [6]}, ArgumentValueError, "same length; got 2 and 1"),
        ({"shape": [-5]}, ArgumentValueError, "negative"),
        ({"shape": [5], "algorithm": "LZ5"}, ArgumentValueError, "LZ4"),
        ({"shape": [5], "layout": "HW"}, LayoutError, "HW"),
    ],
)
def test_mistakes(arguments, kind, message):
    with pytest.raises(kind, match=message):
        run_dalify("decoders.inflate", [HELLO], **arguments)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_damaged_block_fails_one_sample(tmp_path, on_error):
    for number in range(4):
        (tmp_path / f"{number}.lz4").write_bytes(deflated(bytes([number + 1]) * 6))
    (tmp_path / "1.lz4").write_bytes(b"")

    @pipeline_def(batch_size=2, num_threads=1, on_error=on_error)
    def graph():
        files, _ = fn.readers.file(files=[str(tmp_path / f"{number}.lz4") for number in range(4)])
        return fn.decoders.inflate(files, shape=[2, 3])

    pipe = graph()
    (arrays,) = pipe.run()
    found = arrays.as_array()
    assert (found[0] == 1).all()
    assert found[1].any() == (on_error == "skip")
    assert [bad.source for bad in pipe.bad_samples()] == [str(tmp_path / "1.lz4")]


def test_a_shape_beyond_the_limit():
    for shape in ([2**31 - 1, 2**31 - 1], [2**31 - 1] * 20):
        with pytest.raises(LimitError, match="max_sample_bytes"):
            run_dalify("decoders.inflate", [block(np.zeros(3, np.uint8))], shape=shape)
