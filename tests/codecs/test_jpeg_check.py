"""The check of JPEG files, compared with decoding them."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import DecodeError
from dalify.codecs.image import decode_image
from dalify.codecs.jpeg import read_jpeg_header
from dalify.codecs.jpeg_check import is_complete, is_decodable
from tests.helpers.photos import drawn_photo, encode_image

KINDS = [{}, {"subsampling": 0}, {"optimize": True}, {"restart_marker_blocks": 4}, {"quality": 30}]


def encoded(seed: int, **options: object) -> bytes:
    return encode_image(drawn_photo(60, 90, seed), "JPEG", **{"quality": 85, **options})


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Return a file that ends as a JPEG file does, with damage in its headers or in its compressed data."""
    found = np.frombuffer(data, np.uint8).copy()
    scan = data.find(b"\xff\xda") + 14
    place, count = int(random.integers(scan, len(data) - 40)), int(random.integers(1, 200))
    match int(random.integers(6)):
        case 0:
            return data[:place] + b"\xff\xd9"
        case 1:
            found[place : place + count] = random.integers(0, 256, len(found[place : place + count]))
        case 2:
            found[place : place + count] = 0
        case 3:
            return data[:place] + data[place + count : -2] + b"\xff\xd9"
        case 4:
            return data[:place] + b"\xff\xd9" + data[place:]
        case _:
            found[int(random.integers(2, scan))] = random.integers(256)
    return found.tobytes()[:-2] + b"\xff\xd9"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files_that_pass_are_decoded(kind: dict[str, object]) -> None:
    random = np.random.default_rng(3)
    accepted = refused = 0
    for seed in range(300):
        data = np.frombuffer(damaged(encoded(seed % 5, **kind), random), np.uint8)
        try:
            header = read_jpeg_header(data)
        except DecodeError:
            continue
        if header.frame not in (0xC0, 0xC1) or header.components not in (1, 3):
            continue
        if is_complete(data) and is_decodable(data, header.frame_position):
            decode_image(data)
            accepted += 1
        else:
            refused += 1
    assert accepted > 200
    assert refused > 3


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_undamaged_files_pass(kind: dict[str, object]) -> None:
    for seed in range(5):
        data = np.frombuffer(encoded(seed, **kind), np.uint8)
        assert is_complete(data)
        assert is_decodable(data, read_jpeg_header(data).frame_position)
        assert not is_complete(data[: len(data) // 2])
