# %% [markdown]
"""# From a PyTorch DataLoader to dalify

We start from a typical PyTorch data loader and convert it to dalify step by step. The tutorial explains decorators,
pipelines, readers, custom sources, conditions in the graph, pruning of unused nodes, and the training loop.

You can run each cell. Images are written to `out/tutorials/`.
"""

# %%
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import PHOTOGRAPHS, make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(PHOTOGRAPHS)
SIZE, BATCH_SIZE = 160, 16

# %% [markdown]
"""## 1. Where we start

A `Dataset` opens and transforms one photograph at a time, in Python; a `DataLoader` calls it in worker processes and
stacks the results. If the model is fast, the CPU cores that prepare the data are the bottleneck.
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

A decorator is a function that takes a function and returns one. `@shout` above `greet` means `greet = shout(greet)`.
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
"""`@pipeline_def` is such a decorator. It also reads the *source* of the function, so that an `if` can become part of
the graph (section 6). The decorated function creates pipelines. In addition to its own arguments it takes those of
the pipeline: `batch_size`, `num_threads`, `seed` and so on.

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
"""Note two things. The function ran **once**, when the pipeline was created: it describes the work and does not do it.
Its values are not arrays but *graph values* (`DataNode`), which represent batches that do not exist yet. So
`print(encoded)` prints no data, and NumPy functions do not accept a graph value. Operators of `fn`, arithmetic and
indexing accept it.

The images of the batch have different sizes, as in the files. Therefore the batch is a *list* of tensors.
"""

# %%
contact_sheet(OUT / "01_simple.png", [images.at(i) for i in range(8)], [CLASSES[labels.at(i).item()] for i in range(8)])

# %% [markdown]
"""## 4. Readers

A reader is the source of the data, like a `Dataset` in PyTorch. It also does the work of the sampler: order, shards,
the end of an epoch. `fn.readers.file` reads class folders and returns the bytes and the label of each file.
`name` identifies the reader in later calls.
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
print("all images have the same size, so they can be stacked:", images.as_array().shape)
names = [CLASSES[labels.at(i).item()] for i in range(BATCH_SIZE)]
contact_sheet(OUT / "01_augmented.png", list(images.as_array()), names)

# %% [markdown]
"""`fn.random.coin_flip()` returns a graph value, too. It has one number *per sample*, and `horizontal` accepts it. Many
arguments of operators accept either a constant or a graph value.

## 5. A custom source

`fn.external_source` calls your Python code. Two forms are common: an iterable (any object with `__iter__`), or a
callable that gets the index of the sample and raises `StopIteration` at the end of the epoch.
"""


# %%
class Squares:
    """Like a Dataset: it has a length and returns the sample of a given index."""

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

Because the decorator reads the source, an `if` on a graph value decides **per sample**. The batch is split in two
parts, each branch processes one part, and the results are merged. You only write the `if`.
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
"""## 7. Nodes that no output needs are pruned

Each call of an operator creates a *node* of the graph. The graph consists of the nodes that the returned values depend
on. Other nodes are pruned and never run. This is usually what you want, but it can be a mistake: below, the blurred
images should have been returned. `preserve=True` keeps a node that no output needs. Nodes that call your code
(`fn.python_function`) are always kept.

`pipe.explain()` lists the changes to the graph and the reasons: which nodes were pruned, merged or folded, and the
source line of each.
"""


# %%
@pipeline_def(batch_size=4, num_threads=2)
def with_a_forgotten_node():
    encoded, labels = fn.readers.file(file_root=str(FOLDER))
    images = fn.decoders.image(encoded)
    blurred = fn.gaussian_blur(images, window_size=5)  # noqa: F841 - missing in the next line
    return images, labels


pipe = with_a_forgotten_node()
pipe.build()
print(pipe.explain())

# %% [markdown]
"""## 8. Into the training loop

`DALIGenericIterator` converts batches to torch tensors and returns a list with one dictionary per pipeline. The
reader specified by `reader_name` determines the length of an epoch.
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
"""## 9. Comparing the speed

Both loaders do the same work. We measure one epoch of loading without training.
"""


# %%
def seconds_of(batches) -> float:
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


photos = len(CLASSES) * 12
print(f"DataLoader, no workers: {photos / seconds_of(loader):5.0f} images/s")
print(f"dalify, two threads:    {photos / seconds_of(iterator):5.0f} images/s")

# %% [markdown]
"""| in PyTorch | in dalify |
|---|---|
| `Dataset.__getitem__` opens a file | a reader, or `fn.external_source` |
| `Dataset.__getitem__` transforms one sample in Python | operators on the whole batch, in threads |
| `Sampler`, `shuffle=True` | `random_shuffle`, `shard_id`, `num_shards` of the reader |
| `num_workers` processes | `num_threads` threads |
| `collate_fn` | not needed: images of the same size are stacked automatically |
| `drop_last` | `last_batch_policy` |
| `for images, labels in loader` | `for batch in DALIGenericIterator(…)` |

Next: [02_conditionals_and_errors.py](02_conditionals_and_errors.py).
"""
