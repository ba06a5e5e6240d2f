# %% [markdown]
"""# Feeding your own data

`fn.external_source` provides data that no reader supports: from a callback, an iterable, a generator, worker
processes, or calls of `feed_input`. This tutorial shows each of them and when to use it.
"""

# %%
import os
import time
from pathlib import Path

import numpy as np
import torch

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import PHOTOGRAPHS, make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(PHOTOGRAPHS)
PATHS = sorted(FOLDER.glob("*/*.jpg"))

# %% [markdown]
"""## 1. A callback per sample: the usual choice

The callback gets a `types.SampleInfo` (`idx_in_epoch`, `idx_in_batch`, `iteration`, `epoch_idx`), returns arrays, and
raises `StopIteration` at the end of the epoch. It determines the order and repetition of the samples: here it
shuffles the files in each epoch.

The *encoded* file is a one-dimensional array of bytes. Let the pipeline decode it: operators run in threads, the
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
    print(f"epoch {epoch + 1}: {len(labels)} batches, classes of the first: {labels[0]}")
batch = next(iter(iterator))[0]
contact_sheet(
    OUT / "03_callback.png", list(batch["image"].numpy()), [CLASSES[label] for label in batch["label"].flatten()]
)

# %% [markdown]
"""## 2. A batch at a time

If one call can produce many samples, for instance from an array in memory, return a batch: this saves calls. An
iterable source (a list, a generator function, an object with `__iter__`) returns batches by default.
`cycle=True` restarts it at its end.
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
    """A generator function without arguments that yields batches, here torch tensors."""
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
    print("batch sizes", sizes, "then StopIteration; pipe.reset() starts the next epoch")

# %% [markdown]
"""Specify `layout`, `dtype` and `ndim`: operators that need height and width need the layout, and the data of your
source are checked immediately, so that errors do not appear in a later operator.

## 3. Worker processes for slow Python code

Operators run in threads. The callback is Python code, and Python executes one thread at a time. If the callback is
slow, `parallel=True` calls it in `py_num_workers` processes, which return arrays in shared memory. The workers divide
the samples of a batch among themselves. `prefetch_queue_depth` is the number of batches that are produced in advance.
A callback that returns whole batches uses all workers only if `prefetch_queue_depth` is at least the number of workers.
An iterable is read by one worker.
"""


# %%
def slow_sample(sample: types.SampleInfo) -> np.ndarray:
    if sample.iteration >= 12:
        raise StopIteration
    until = time.perf_counter() + 0.004  # simulate work in Python
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
    print(f"in the main process:     {seconds_of_an_epoch(False) * 1000:.0f} ms per batch")
    print(f"in two worker processes: {seconds_of_an_epoch(True) * 1000:.0f} ms per batch")

# %% [markdown]
"""## 4. Feeding data from the program

If your program provides the data of each iteration, for instance in a server, specify `name` and omit `source`. Then
call `feed_input` before `run()`, or pass the data to `run()`.
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
print("passed to run():", [images.at(i).shape for i in range(len(images))])

# %% [markdown]
"""## 5. Ragged data into PyTorch

In detection and text data, samples have different lengths and cannot be stacked. Pad them in the pipeline, so that
the iterator returns one tensor.
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
| little Python code per sample | callback with `SampleInfo`, `batch=False` |
| arrays in memory, a generator | iterable or generator function: batches |
| slow Python code per sample | the same callback, `parallel=True` |
| the program provides the data of each iteration | `feed_input`, or `run(name=data)` |

Next: [04_augmenting_images.py](04_augmenting_images.py).
"""
