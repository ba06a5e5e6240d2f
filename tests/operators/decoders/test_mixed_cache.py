"""Caches of decoded images on the device, with nvImageCodec, which runs its CPU backend in emulation."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import eager, fn, pipeline_def, types
from tests.helpers.photos import drawn_photo
from tests.operators.decoders import mixed_pipelines as mixed

pytestmark = pytest.mark.gpu


def cached(encoded: Any, device: str, **options: Any) -> Any:
    given = {"cache_type": "threshold", "cache_size": 16, **options}
    return fn.decoders.image(encoded, device=device, **given)


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
@pytest.mark.parametrize("processes", [0, 1])
def test_cached_images_are_decoded_once(cache_type: str, processes: int, many: list[str], calls: list[int]) -> None:
    pipe = mixed.pipeline(
        many, "mixed", partial(cached, cache_type=cache_type), processes=processes, prefetch_queue_depth=1
    )
    plain = mixed.pipeline(many, "cpu", mixed.OPERATORS["image"])
    try:
        mixed.assert_same_batches(pipe, plain, 9)
        assert sum(calls) == 10  # JPEG files that the device decodes, of the first epoch
        text = pipe.explain()
    finally:
        pipe.close()
    assert "is cached on the device" in text
    assert "decodes on the device" in text
    hits, total, misses = map(int, re.findall(r"(\d+) of (\d+) samples came from the cache, (\d+) were", text)[0])
    assert misses == len(many)
    assert hits + misses == total >= 9 * mixed.BATCH


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
def test_a_cache_on_the_device_is_bounded(cache_type: str, tmp_path: Path, calls: list[int]) -> None:
    shapes = [(100 + 40 * number, 900) for number in range(10)]
    paths = [str(tmp_path / f"{number}.jpg") for number in range(len(shapes))]
    for number, (path, (height, width)) in enumerate(zip(paths, shapes, strict=True)):
        Image.fromarray(drawn_photo(height, width, number)).save(path)
    operator = partial(cached, cache_type=cache_type, cache_size=2)
    pipe, plain = mixed.pipeline(paths, "mixed", operator), mixed.pipeline(paths, "cpu", mixed.OPERATORS["image"])
    mixed.assert_same_batches(pipe, plain, 6)
    text = pipe.explain()
    taken, limit = map(int, re.findall(r"(\d+) of (\d+) bytes are taken on the device", text)[0])
    sizes = sorted(height * width * 3 for height, width in shapes)
    assert limit == 2 << 20
    assert limit - sizes[-1] < taken <= limit
    hits, total = map(int, re.findall(r"(\d+) of (\d+) samples came from", text)[0])
    assert 0 < hits < total - len(paths)


def test_small_images_are_not_cached_on_the_device(many: list[str], calls: list[int]) -> None:
    sizes = [np.asarray(Image.open(path).convert("RGB")).nbytes for path in many]
    threshold = sorted(sizes)[len(sizes) // 2]
    pipe = mixed.pipeline(many, "mixed", partial(cached, cache_threshold=threshold), prefetch_queue_depth=1)
    mixed.assert_same_batches(pipe, mixed.pipeline(many, "cpu", mixed.OPERATORS["image"]), 6)
    hits = int(re.findall(r"(\d+) of \d+ samples came from", pipe.explain())[0])
    assert hits == sum(size > threshold for size in sizes)


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_bad_samples_are_not_cached_on_the_device(
    policy: str, processes: int, tmp_path: Path, calls: list[int]
) -> None:
    bad_files = [mixed.damaged("truncated"), mixed.damaged("no quantization tables")]
    # In a different order in each epoch, so that different images, of one size, replace the bad ones.
    paths = mixed.write(tmp_path, [mixed.jpeg(0), *bad_files, *(mixed.jpeg(seed) for seed in range(12, 108, 12))])
    options: dict[str, Any] = {"on_error": policy, "is_shuffled": True}
    pipe = mixed.pipeline(paths, "mixed", cached, processes=processes, **options)
    plain = mixed.pipeline(paths, "cpu", mixed.OPERATORS["image"], **options)
    try:
        mixed.assert_same_batches(pipe, plain, 12)
        bad, expected = ([(one.source, one.error, one.batch) for one in each.bad_samples()] for each in (pipe, plain))
        assert bad == expected
        assert bad
    finally:
        pipe.close()


def test_a_changed_file_is_decoded_again_on_the_device(tmp_path: Path, calls: list[int]) -> None:
    paths = mixed.write(tmp_path, [mixed.jpeg(seed) for seed in range(mixed.BATCH)])
    pipe = mixed.pipeline(paths, "mixed", cached, prefetch_queue_depth=1)
    plain = mixed.pipeline(paths, "cpu", mixed.OPERATORS["image"], prefetch_queue_depth=1)
    mixed.assert_same_batches(pipe, plain, 2)
    Path(paths[2]).write_bytes(mixed.jpeg(9, orientation=6))
    mixed.assert_same_batches(pipe, plain, 2)
    assert calls[0] == mixed.BATCH
    assert calls[-1] == 1


def test_a_random_crop_after_a_cached_decoder_reads_whole_images(many: list[str], calls: list[int]) -> None:
    def cropped(encoded: Any, device: str, **options: Any) -> Any:
        return fn.random_resized_crop(fn.decoders.image(encoded, device=device, **options), size=[24, 32])

    pipe = mixed.pipeline(many, "mixed", partial(cropped, cache_type="threshold", cache_size=16))
    for (images, _), (expected, _) in zip(
        mixed.batches(pipe, 9), mixed.batches(mixed.pipeline(many, "cpu", cropped), 9), strict=True
    ):
        for found, wanted in zip(images, expected, strict=True):
            assert np.abs(found.astype(float) - wanted).mean() < mixed.LARGEST_MEAN_ON_DEVICES
    assert sum(calls) == 10


def test_what_has_no_identity_is_decoded_each_time(many: list[str], calls: list[int]) -> None:
    data = [np.fromfile(path, np.uint8) for path in many[: mixed.BATCH]]

    @pipeline_def(batch_size=mixed.BATCH, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def define() -> Any:
        return cached(fn.external_source(source=lambda: data), "mixed")

    pipe = define()
    for _ in range(3):
        for found, path in zip(pipe.run()[0].as_cpu(), many, strict=False):
            mixed.assert_same(np.asarray(found), np.asarray(eager.decoders.image(np.fromfile(path, np.uint8))))
    assert "is not cached" in pipe.explain()
    assert calls == [mixed.BATCH] * 3


def test_immediate_computation_caches_nothing(many: list[str], calls: list[int]) -> None:
    for path in many[:2] * 2:
        data = np.fromfile(path, np.uint8)
        found = eager.decoders.image(data, device="mixed", cache_type="threshold", cache_size=16)
        mixed.assert_same(np.asarray(found.cpu()), np.asarray(eager.decoders.image(data)))
    assert calls == [1] * 4


@pytest.mark.parametrize("options", [{"cache_folder": "folder"}, {"dtype": types.FLOAT}])
def test_caches_of_what_the_host_decodes_are_on_the_host(
    options: dict[str, Any], many: list[str], tmp_path: Path, calls: list[int]
) -> None:
    given = {**options, **({"cache_folder": str(tmp_path / "cache")} if "cache_folder" in options else {})}
    pipe = mixed.pipeline(many, "mixed", partial(cached, **given))
    others = {name: value for name, value in options.items() if name != "cache_folder"}
    plain = mixed.pipeline(many, "cpu", lambda encoded, device: fn.decoders.image(encoded, device=device, **others))
    mixed.assert_same_batches(pipe, plain, 6)
    assert "is cached on the device" not in pipe.explain()
    assert "samples came from the cache" in pipe.explain()
    assert not calls
