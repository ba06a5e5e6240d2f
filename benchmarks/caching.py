"""Measure the second epoch if the first one cached decoded and resized images.

The pipeline is that of ResNet-50: decode, resize to 256 x 256, random crop of 224 x 224 and mirror, normalize to
float CHW. DALI's decoder for the CPU has no cache. Measurements start after all images were processed once, and
contenders alternate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.common import OURS, RIVAL, Contender, Options, RunBatch, compare, library, photo_folder
from benchmarks.training_pipeline import BATCH_SIZE, DEVIATION, MEAN

CACHE_MB = 2048
# The target speed, relative to DALI.
TARGET = 6.0


def training(lib: SimpleNamespace, folder: str, num_threads: int, keep: Callable[[Any], Any]) -> Any:
    """Define the pipeline with dalify or with DALI.

    Args:
        lib: the library; see `benchmarks.common.library`.
        folder: the folder of the photographs.
        num_threads: the number of threads of the pipeline.
        keep: function that caches the resized images, or returns them unchanged.
    """
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = keep(fn.resize(images, size=[256, 256]))
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            crop=(224, 224),
            crop_pos_x=fn.random.uniform(range=(0.0, 1.0)),
            crop_pos_y=fn.random.uniform(range=(0.0, 1.0)),
            mirror=fn.random.coin_flip(),
            mean=MEAN,
            std=DEVIATION,
        )
        return images, labels

    return pipeline()


@contextmanager
def _second_epoch(root: str, folder: str, num_threads: int, **cache: Any) -> Iterator[RunBatch]:
    lib = library(root)
    pipe = training(
        lib, folder, num_threads, (lambda images: lib.fn.cache(images, **cache)) if cache else (lambda images: images)
    )
    pipe.build()
    if cache:
        size = pipe.reader_meta("photos")["epoch_size"]
        for _ in range(-(-size // BATCH_SIZE) + 4):  # one epoch and the prefetched batches
            pipe.run()
    yield lambda: len(pipe.run()[0])


def main(options: Options) -> None:
    """Time one and two threads: dalify with a cache in memory, with a cache in a folder, without a cache, and DALI."""
    folder = str(photo_folder(options))
    for num_threads in (1, 2):
        with tempfile.TemporaryDirectory() as kept:
            rows = {
                "dalify, cache in memory": (OURS, {"cache_size": CACHE_MB}),
                "DALI": (RIVAL, {}),
                "dalify, cache in a folder": (OURS, {"cache_size": CACHE_MB, "cache_folder": kept}),
                "dalify without a cache": (OURS, {}),
            }
            contenders = [
                Contender(name, partial(_second_epoch, root, folder, num_threads, **cache), (root,))
                for name, (root, cache) in rows.items()
            ]
            title = f"ResNet-50 training, second epoch, {num_threads} thread{'s' * (num_threads > 1)}"
            found = compare(title, contenders, options)
            if "DALI" in found:
                ratio = found["dalify, cache in memory"].samples_per_second / found["DALI"].samples_per_second
                print(f"{ratio:.1f} x DALI; the target is {TARGET:.0f} x\n")
