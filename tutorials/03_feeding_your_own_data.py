# %% [markdown]
"""# Feeding your own data

Data that no reader knows come through `fn.external_source`: from a callback, an iterable, a generator, from worker
processes, or pushed in by hand. This tutorial shows each, and when to use which.
"""

# %%
import os
import time
from pathlib import Path

import numpy as np
import torch

from dalify import fn, pipeline_def, types
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import PHOTOGRAPHS, make_photos
from pictures import contact_sheet

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(PHOTOGRAPHS)
PATHS = sorted(FOLDER.glob("*/*.jpg"))

# %% [markdown]
"""## 1. A callback per sample: the usual choice

It is told which sample is wanted (`types.SampleInfo`: `idx_in_epoch`, `idx_in_batch`, `iteration`, `epoch_idx`),
returns arrays, and raises `StopIteration` when the epoch is over. Since it is a function of the number alone, order
and repetition are yours: here the files are shuffled anew in each epoch.

The *encoded* file is a one-dimensional array of bytes. Let the pipeline decode it: that runs in threads, your
callback does not.
"""


# %%
class ShuffledFiles:
    def __init__(self, paths: list[Path], batch_size: int, seed: int) -> None:
        self.paths, self.seed = paths, seed
        self.full_batches = len(paths) // batch_size
        self.order, self.epoch = np.arange(len(paths)), -1

    def __call__(self, sample: types.SampleInfo) -> tuple[np.ndarray, np.ndarray]:
        if sample.iteration >= self.full_batches:
            raise StopIteration
        if sample.epoch_idx != self.epoch:
            self.epoch = sample.epoch_idx
            self.order = np.random.default_rng(self.seed + self.epoch).permutation(len(self.paths))
        path = self.paths[self.order[sample.idx_in_epoch]]
        return np.fromfile(path, np.uint8), np.array([CLASSES.index(path.parent.name)], np.int32)


@pipeline_def(batch_size=8, num_threads=2)
def from_callback():
    encoded, labels = fn.external_source(
        source=ShuffledFiles(PATHS, 8, seed=1), num_outputs=2, batch=False, dtype=[types.UINT8, types.INT32]
    )
    images = fn.resize(fn.decoders.image(encoded), size=[128, 128])
    return images, labels


iterator = DALIGenericIterator(
    from_callback(), ["image", "label"], last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
)
for epoch in range(2):
    labels = [batch[0]["label"].flatten().tolist() for batch in iterator]
    print(f"epoch {epoch + 1}: {len(labels)} batches, the first of classes {labels[0]}")
batch = next(iter(iterator))[0]
contact_sheet(
    OUT / "03_callback.png", list(batch["image"].numpy()), [CLASSES[label] for label in batch["label"].flatten()]
)

# %% [markdown]
"""## 2. A batch at a time

Where one call can make many samples, from an array in memory for instance, make a batch: it costs one call instead of
many. A source that is an iterable (a list, a generator function, an object with `__iter__`) gives batches by default.
`cycle=True` starts it again when it ends.
"""

# %%
digits = np.arange(10 * 4, dtype=np.float32).reshape(10, 4)


@pipeline_def(batch_size=5, num_threads=1)
def from_iterable():
    return fn.external_source(source=[digits[:5], digits[5:]], cycle=True)


pipe = from_iterable()
pipe.build()
print("first elements:", [pipe.run()[0].as_array()[:, 0].tolist() for _ in range(3)])


def noise():
    """A generator function: no argument, yields batches; here tensors of torch."""
    generator = torch.Generator().manual_seed(1)
    for size in (5, 5, 3):  # a batch may be smaller than batch_size
        yield torch.rand(size, 16, 16, 1, generator=generator)


@pipeline_def(batch_size=5, num_threads=1)
def from_generator():
    blocks = fn.external_source(source=noise, layout="HWC", dtype=types.FLOAT, ndim=3)
    return fn.resize(blocks, size=[64, 64], interp_type=types.INTERP_CUBIC)


pipe = from_generator()
pipe.build()
sizes = []
try:
    while True:
        (images,) = pipe.run()
        sizes.append(len(images))
except StopIteration:
    print("batches of", sizes, "and then StopIteration; pipe.reset() starts again")

# %% [markdown]
"""`layout`, `dtype` and `ndim` are worth writing down: operators that look for height and width need the layout, and
what your source gives is checked against them at once instead of failing far away.

## 3. Worker processes for slow Python

Operators run in threads. Your callback is Python, and Python runs one thread at a time; if it is slow,
`parallel=True` has it called in `py_num_workers` processes, and hands arrays over in shared memory. A worker makes
whole batches, so `prefetch_queue_depth`, the number of batches that may be made ahead, has to be at least the number
of workers for all of them to be busy.
"""


# %%
def slow_sample(sample: types.SampleInfo) -> np.ndarray:
    if sample.iteration >= 12:
        raise StopIteration
    until = time.perf_counter() + 0.004  # some work in Python
    while time.perf_counter() < until:
        pass
    return np.full((32, 32, 3), sample.idx_in_epoch % 256, np.uint8)


def seconds_of_an_epoch(parallel: bool) -> float:
    @pipeline_def(batch_size=16, num_threads=2, py_num_workers=2, py_start_method="fork")
    def from_workers():
        if not parallel:
            return fn.external_source(source=slow_sample, batch=False)
        return fn.external_source(source=slow_sample, batch=False, parallel=True, prefetch_queue_depth=4)

    pipe = from_workers()
    pipe.build()
    pipe.run()  # the first batch waits for the workers to start
    start = time.perf_counter()
    batches = 0
    try:
        while True:
            pipe.run()
            batches += 1
    except StopIteration:
        return (time.perf_counter() - start) / batches


if hasattr(os, "fork"):  # elsewhere the start method is "spawn", and the callback must be importable
    print(f"in the pipeline's process: {seconds_of_an_epoch(False) * 1000:.0f} ms per batch")
    print(f"in two worker processes:   {seconds_of_an_epoch(True) * 1000:.0f} ms per batch")

# %% [markdown]
"""## 4. Pushing data in

Where your program decides what comes next, a server for instance, name the source and give it no `source`. Then
either feed it before running, or hand the data to `run()` itself.
"""

# %%
pipe = Pipeline(batch_size=4, num_threads=2, prefetch_queue_depth=1)
with pipe:
    encoded = fn.external_source(name="request", dtype=types.UINT8, ndim=1)
    pipe.set_outputs(fn.resize(fn.decoders.image(encoded), resize_shorter=96))
pipe.build()

request = [np.fromfile(path, np.uint8) for path in PATHS[::40]]
pipe.feed_input("request", request)
(images,) = pipe.run()
print("fed:", [images.at(i).shape for i in range(len(images))])
(images,) = pipe.run(request=request[:2])
print("handed over:", [images.at(i).shape for i in range(len(images))])

# %% [markdown]
"""## 5. Ragged data into PyTorch

Detection and text have samples of different lengths. They cannot be stacked, but they can be padded in the pipeline,
so that the iterator gets one tensor.
"""


# %%
def boxes_of(sample: types.SampleInfo) -> np.ndarray:
    random = np.random.default_rng(sample.idx_in_epoch)
    return random.uniform(0, 1, (random.integers(1, 5), 4)).astype(np.float32)


@pipeline_def(batch_size=4, num_threads=1)
def padded():
    boxes = fn.external_source(source=boxes_of, batch=False)
    return fn.pad(boxes, axes=[0], fill_value=-1.0), boxes.shape()[0]


pipe = padded()
pipe.build()
boxes, counts = pipe.run()
print("padded to", boxes.as_array().shape, "from", counts.as_array().tolist(), "boxes")

# %% [markdown]
"""| your data | use |
|---|---|
| files on disk, class folders | `fn.readers.file` |
| one sample costs some Python | callback with `SampleInfo`, `batch=False` |
| arrays in memory, a generator | iterable or generator function: batches |
| one sample costs much Python | the same callback, `parallel=True` |
| the program decides | `feed_input`, or `run(name=data)` |

Next: [04_augmenting_images.py](04_augmenting_images.py).
"""
