# %% [markdown]
"""# From a PyTorch DataLoader to dalify

We start from a data loader as everybody writes it, and move it to dalify step by step. On the way: what a decorator
is, what a pipeline is, readers, a source of our own, how Python's `if` gets into the graph, why something may
disappear from it, and how batches reach the training loop.

Each cell can be run; pictures go to `out/tutorials/`.
"""

# %%
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from dalify import fn, pipeline_def, types
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import PHOTOGRAPHS, make_photos
from pictures import contact_sheet

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(PHOTOGRAPHS)
SIZE, BATCH_SIZE = 160, 16

# %% [markdown]
"""## 1. Where we start

A `Dataset` opens and transforms one photograph at a time, in Python; a `DataLoader` calls it in worker processes and
stacks what comes back. When the model is quick, the processors that prepare data are the bottleneck.
"""


# %%
class Photos(torch.utils.data.Dataset):
    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR))
        if np.random.default_rng().random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(pixels.transpose(2, 0, 1) / np.float32(255)), CLASSES.index(path.parent.name)


loader = torch.utils.data.DataLoader(Photos(FOLDER), batch_size=BATCH_SIZE, shuffle=True)
images, labels = next(iter(loader))
print("DataLoader:", tuple(images.shape), images.dtype, [CLASSES[label] for label in labels[:4]])

# %% [markdown]
"""## 2. What a decorator is

A function that takes a function and returns one. `@shout` above `greet` means `greet = shout(greet)`, nothing more.
"""


# %%
def shout(function):
    def louder(name):
        return function(name).upper() + "!"

    return louder


@shout
def greet(name):
    return f"hello {name}"


print(greet("world"))

# %% [markdown]
"""`@pipeline_def` is such a decorator, and does more than most: it reads the function's *source*, so that an `if` can
become part of the graph (section 6). What it returns is no longer your function but a maker of pipelines, which also
takes the pipeline's own arguments: `batch_size`, `num_threads`, `seed` and so on.

## 3. A pipeline
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=1)
def simple():
    print("  simple() is running; encoded photographs are", end=" ")
    encoded, labels = fn.readers.file(file_root=str(FOLDER))
    print(type(encoded).__name__)
    return fn.decoders.image(encoded), labels


pipe = simple()
pipe.build()
print("running it twice:")
for _ in range(2):
    images, labels = pipe.run()
print(type(images).__name__, "of", len(images), "images, the first of shape", images.at(0).shape)

# %% [markdown]
"""Two things to see. The function ran **once**, when the pipeline was made: it describes the work, it does not do it.
What flows through it are not arrays but `DataNode`s, promises of a batch. So `print(encoded)` shows a node, and NumPy
functions do not work on it; operators of `fn`, arithmetic and indexing do.

The batch has images of different sizes, as they are in the files. That is why it is a *list* of tensors.
"""

# %%
contact_sheet(OUT / "01_simple.png", [images.at(i) for i in range(8)], [CLASSES[labels.at(i).item()] for i in range(8)])

# %% [markdown]
"""## 4. Readers

A reader is the source of the data, as `Dataset` is in PyTorch, and it also does the sampler's work: order, shards,
the end of an epoch. `fn.readers.file` walks through class folders and gives the files' bytes and a label for each.
`name` is what we call it by later.
"""

# %%


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=1)
def augmented():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="photos")
    images = fn.decoders.image(encoded)
    images = fn.resize(images, size=[SIZE, SIZE])
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    return images, labels


pipe = augmented()
pipe.build()
print("photographs in an epoch:", pipe.epoch_size("photos"))
images, labels = pipe.run()
print("now all of one size, so they stack:", images.as_array().shape)
names = [CLASSES[labels.at(i).item()] for i in range(BATCH_SIZE)]
contact_sheet(OUT / "01_augmented.png", list(images.as_array()), names)

# %% [markdown]
"""`fn.random.coin_flip()` is a node too: it gives a number *per sample*, and `horizontal` takes it. Most arguments of
operators take either a constant or such a node.

## 5. A source of your own

`fn.external_source` calls your Python code. Two forms are common: an iterable (anything with `__iter__`), or a
callable that is told which sample is wanted and raises `StopIteration` when the epoch is over.
"""


# %%
class Squares:
    """Like a Dataset: knows its length, gives sample number so-and-so."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, sample: types.SampleInfo) -> tuple[np.ndarray, np.ndarray]:
        if sample.idx_in_epoch >= self.length:
            raise StopIteration
        image = np.zeros((64, 64, 3), np.uint8)
        side = 4 + 2 * sample.idx_in_epoch
        image[32 - side // 2 : 32 + side // 2, 32 - side // 2 : 32 + side // 2, sample.idx_in_epoch % 3] = 255
        return image, np.array([side], np.int32)


@pipeline_def(batch_size=8, num_threads=2, seed=3)
def own_source():
    images, sides = fn.external_source(
        source=Squares(24), num_outputs=2, batch=False, layout=["HWC", ""], dtype=[types.UINT8, types.INT32]
    )
    return fn.rotate(images, angle=fn.random.uniform(range=[-45.0, 45.0]), keep_size=True), sides


pipe = own_source()
pipe.build()
images, sides = pipe.run()
captions = [f"side {sides.at(i).item()}" for i in range(8)]
contact_sheet(OUT / "01_own_source.png", list(images.as_array()), captions, cell=64)

# %% [markdown]
"""## 6. Python's `if` becomes part of the graph

Because the decorator reads the source, an `if` on a node decides **per sample**: the batch is split in two, each part
goes through its branch, and the parts are merged again. Nothing of it has to be written by hand.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=5)
def with_a_condition():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="photos")
    images = fn.resize(fn.decoders.image(encoded), size=[SIZE, SIZE])
    is_gray = fn.random.coin_flip(probability=0.5, dtype=types.BOOL)
    if is_gray:
        images = fn.saturation(images, saturation=0.0)
    else:
        images = fn.hue(images, hue=fn.random.uniform(range=[-90.0, 90.0]))
    return images, labels, is_gray


pipe = with_a_condition()
pipe.build()
images, labels, is_gray = pipe.run()
captions = [
    f"{CLASSES[labels.at(i).item()]}, {'gray' if is_gray.at(i).item() else 'other hue'}" for i in range(BATCH_SIZE)
]
contact_sheet(OUT / "01_condition.png", list(images.as_array()), captions)
pipe.save_graph_to_svg_file(OUT / "01_condition.svg")

# %% [markdown]
"""## 7. What no output needs is pruned

The graph is found by walking back from what the function returns. A node that no output needs is not in it, and never
runs. Mostly that is what you want, and it surprises when the node was there for a reason: below, the blurred images
were meant to be returned. `preserve=True` keeps a node that nothing asks for. Callbacks of yours
(`fn.python_function`) are kept without being told.

`pipe.explain()` tells what became of the graph, and why: what was pruned, merged, folded, and on which line it stood.
"""


# %%
@pipeline_def(batch_size=4, num_threads=2)
def with_a_forgotten_node():
    encoded, labels = fn.readers.file(file_root=str(FOLDER))
    images = fn.decoders.image(encoded)
    blurred = fn.gaussian_blur(images, window_size=5)  # noqa: F841 - forgotten in the next line
    return images, labels


pipe = with_a_forgotten_node()
pipe.build()
print(pipe.explain())

# %% [markdown]
"""## 8. Into the training loop

`DALIGenericIterator` turns batches into torch tensors: a list with one dictionary per pipeline. It asks the reader,
by its name, how long an epoch is.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=7)
def training():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="photos")
    images = fn.decoders.image(encoded)
    images = fn.resize(images, size=[SIZE, SIZE])
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[0.0] * 3, std=[255.0] * 3)
    return images, labels


iterator = DALIGenericIterator(
    training(), ["image", "label"], reader_name="photos", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, stride=4),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(256, len(CLASSES)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    losses = []
    for batch in iterator:
        images, labels = batch[0]["image"], batch[0]["label"].squeeze(-1).long()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1}: {len(losses)} batches, mean loss {np.mean(losses):.2f}")

# %% [markdown]
"""## 9. Was it worth it?

The same work, loading alone, one epoch each.
"""


# %%
def seconds_of(batches) -> float:
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


photos = len(CLASSES) * 12
print(f"DataLoader, in process: {photos / seconds_of(loader):5.0f} images/s")
print(f"dalify, two threads:    {photos / seconds_of(iterator):5.0f} images/s")

# %% [markdown]
"""| in PyTorch | in dalify |
|---|---|
| `Dataset.__getitem__` opens a file | a reader, or `fn.external_source` |
| `Dataset.__getitem__` transforms one sample in Python | operators on the whole batch, in threads |
| `Sampler`, `shuffle=True` | `random_shuffle`, `shard_id`, `num_shards` of the reader |
| `num_workers` processes | `num_threads` threads |
| `collate_fn` | nothing: images of one size stack by themselves |
| `drop_last` | `last_batch_policy` |
| `for images, labels in loader` | `for batch in DALIGenericIterator(…)` |

Next: [02_conditionals_and_errors.py](02_conditionals_and_errors.py).
"""
