# %% [markdown]
"""# Conditionals, and how to read an error

In a pipeline, the condition of an `if` can be a Python value or a graph value. This tutorial shows both, which
conditions on graph values are supported, and what error messages contain.
"""

# %%
from pathlib import Path

import numpy as np

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from photos import make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
SIZE = 160

# %% [markdown]
"""## 1. Two kinds of `if`

The condition of `if is_training:` is a Python value. It is evaluated once, when the graph is built, and the graph
contains only one of the branches.

The condition of `if level < 60:` is a graph value, which has one value per sample. It becomes part of the graph and is
evaluated for each sample.
"""


# %%
@pipeline_def(batch_size=8, num_threads=2, seed=1)
def brighten_the_dark(is_training: bool):
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=is_training)
    images = fn.resize(fn.decoders.image(encoded), size=[SIZE, SIZE])
    level = fn.reductions.mean(images, dtype=types.FLOAT)
    if is_training:  # a Python value: evaluated now
        images = fn.flip(images, horizontal=fn.random.coin_flip())
    if level < 60:  # a graph value: evaluated per sample
        images = fn.brightness(images, brightness=2.5)
        what = 2
    elif level < 100:
        images = fn.brightness(images, brightness=1.5)
        what = 1
    else:
        what = 0
    return images, level, what


pipe = brighten_the_dark(is_training=True)
pipe.build()
images, levels, what = pipe.run()
words = ["unchanged", "x 1.5", "x 2.5"]
captions = [f"mean {levels.at(i).item():.0f}: {words[what.at(i).item()]}" for i in range(8)]
contact_sheet(OUT / "02_brighten.png", list(images.as_array()), captions)

# %% [markdown]
"""## 2. Supported syntax

`if / elif / else` nested to any depth, also in functions that the pipeline calls; `x if c else y`; `and`, `or`,
`not`; `a < b < c`; an early `return`. A `for` over Python values is unrolled, and its body may contain conditions.
"""


# %%
def limit_contrast(image):
    """An ordinary function that the pipeline calls. Conditions and early returns work here too."""
    spread = fn.reductions.max(image) - fn.reductions.min(image)
    if spread < 100:
        return image
    return fn.contrast(image, contrast=0.6)


@pipeline_def(batch_size=8, num_threads=2, seed=2)
def several_forms():
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    images = fn.resize(fn.decoders.image(encoded), size=[SIZE, SIZE])
    images = limit_contrast(images)
    turn = fn.random.uniform(range=[0.0, 1.0])
    for threshold in (0.25, 0.5, 0.75):  # unrolled: three conditions in the graph
        if turn > threshold:
            images = fn.rotate(images, angle=30.0, keep_size=True)
    is_wanted = 0.1 < turn < 0.9 and not fn.random.coin_flip(probability=0.2, dtype=types.BOOL)
    images = images if is_wanted else fn.cast(images // 4, dtype=types.UINT8)
    return images, turn


pipe = several_forms()
pipe.build()
images, turns = pipe.run()
captions = [f"turn {turns.at(i).item():.2f}" for i in range(8)]
contact_sheet(OUT / "02_forms.png", list(images.as_array()), captions)

# %% [markdown]
"""Random numbers do not depend on the branch: each sample gets the number that it would get without the
condition. So an additional branch does not change the other samples, and experiments stay comparable.

## 3. Reading errors

Every message says what is wrong, on which line of *your* code, and what to write instead. The following cells catch
and print errors.
"""


# %%
def show_error(make):
    try:
        make()
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n")
    else:
        raise SystemExit(f"{make.__name__} was expected to fail")


# %% [markdown]
"""**The condition is an array.** An `if` needs one value per sample. Specify how to reduce the array."""


# %%
@pipeline_def(batch_size=4, num_threads=1)
def condition_on_an_image():
    images = fn.random.uniform(range=[0.0, 255.0], shape=[8, 8])
    if images > 128:
        images = images / 2
    return images


show_error(lambda: condition_on_an_image().run())

# %% [markdown]
"""**The branches have different types.** Both must return the same type, so that the results can be merged into one
batch. DALI raises the error in an iteration whose samples take both branches; dalify raises it when the pipeline is
built."""


# %%
@pipeline_def(batch_size=4, num_threads=1)
def branches_of_two_types():
    value = fn.random.uniform(range=[0.0, 1.0])
    if value > 0.5:
        value = fn.cast(value, dtype=types.INT32)
    return value


show_error(lambda: branches_of_two_types().build())

# %% [markdown]
"""**Unsupported syntax raises an error** and never gives wrong results. Here a loop depends on the data."""


# %%
@pipeline_def(batch_size=4, num_threads=1)
def loop_on_data():
    value = fn.random.uniform(range=[0.0, 1.0])
    while value < 0.5:
        value = value * 2
    return value


show_error(lambda: loop_on_data().build())

# %% [markdown]
"""**A misspelled name**, of an argument and of an operator."""


# %%
@pipeline_def(batch_size=4, num_threads=1)
def misspelled_argument():
    encoded, _ = fn.readers.file(file_root=str(FOLDER))
    return fn.flip(fn.decoders.image(encoded), horizontol=1)


show_error(lambda: misspelled_argument().build())
show_error(lambda: fn.resise)

# %% [markdown]
"""**A graph value is not an array**: it has no data while the graph is being built."""


# %%
@pipeline_def(batch_size=4, num_threads=1)
def iterates_over_a_graph_value():
    value = fn.random.uniform(range=[0.0, 1.0], shape=[3])
    return [element + 1 for element in value]


show_error(lambda: iterates_over_a_graph_value().build())

# %% [markdown]
"""**A damaged file** raises an error during `run()`. The message names the file. The next `run()` works."""

# %%
damaged = OUT / "damaged" / "cat"
damaged.mkdir(parents=True, exist_ok=True)
photo = (FOLDER / "cat" / "000.jpg").read_bytes()
for number in range(4):
    (damaged / f"{number}.jpg").write_bytes(b"this is not a photograph" if number == 2 else photo)


@pipeline_def(batch_size=2, num_threads=1)
def reads_a_damaged_file():
    encoded, _ = fn.readers.file(file_root=str(damaged.parent))
    return fn.decoders.image(encoded)


pipe = reads_a_damaged_file()
pipe.build()
(images,) = pipe.run()
print("the first two are correct:", [images.at(i).shape for i in range(2)])
show_error(pipe.run)
(images,) = pipe.run()
print("the pipeline continues:", [images.at(i).shape for i in range(2)])

# %% [markdown]
"""**An empty folder** raises an error when the pipeline is built."""

# %%
empty = OUT / "empty"
empty.mkdir(parents=True, exist_ok=True)


@pipeline_def(batch_size=2, num_threads=1)
def reads_nothing():
    return fn.readers.file(file_root=str(empty))


show_error(lambda: reads_nothing().build())

# %% [markdown]
"""**Your source raises an exception**: the traceback shows your code. You can continue or reset the epoch."""


# %%
def source(sample):
    if sample.idx_in_epoch == 5:
        raise ValueError("number 5 is missing in my archive")
    return np.full(3, sample.idx_in_epoch, np.float32)


@pipeline_def(batch_size=4, num_threads=1, prefetch_queue_depth=1)
def own_source_fails():
    return fn.external_source(source=source, batch=False)


pipe = own_source_fails()
pipe.build()
print(pipe.run()[0].as_array()[:, 0])
show_error(pipe.run)

# %% [markdown]
"""All of these derive from the built-in classes that DALI raises in the same place (`TypeError`, `ValueError`,
`RuntimeError`, …), so existing `except` clauses work.

Next: [03_feeding_your_own_data.py](03_feeding_your_own_data.py).
"""
