# %% [markdown]
"""# Inspecting pipelines

A pipeline describes work that other threads do later for many images. This makes it fast, but hard to inspect. This
tutorial shows how to run one operator immediately on one image, execute the whole function step by step, read an
intermediate value of a running pipeline, and list the changes to the graph.
"""

# %%
from pathlib import Path

import numpy as np

import dalify
from contact_sheets import contact_sheet
from dalify import eager, fn, pipeline_def, types
from dalify.base.errors import DalifyError
from photos import PHOTOGRAPHS, make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(PHOTOGRAPHS)

# %% [markdown]
"""## 1. One operator, one image

`dalify.eager` has the operators of `fn` as ordinary functions, which take and return arrays.
"""

# %%
photo = eager.decoders.image((FOLDER / "cat" / "000.jpg").read_bytes())
print("decoded:", photo.dtype, photo.shape)
tries = {
    "unchanged": eager.resize(photo, size=[128, 128]),
    "rotate 45": eager.resize(eager.rotate(photo, angle=45), size=[128, 128]),
    "hue 90": eager.resize(eager.hue(photo, hue=90), size=[128, 128]),
    "water": eager.resize(eager.water(photo), size=[128, 128]),
    "jpeg 5": eager.resize(eager.jpeg_compression_distortion(photo, quality=5), size=[128, 128]),
}
contact_sheet(OUT / "11_eager.png", list(tries.values()), list(tries))

# %% [markdown]
"""You can test arguments in a loop without building a pipeline. A batch contains several images; then an argument may
have one value per sample.
"""

# %%
angles = eager.batch([np.float32(angle) for angle in (0, 15, 30, 45, 60, 75)])
turned = eager.rotate(eager.batch([photo] * 6), angle=angles, size=[200, 200])
contact_sheet(
    OUT / "11_angles.png", [np.asarray(image) for image in turned], [f"{angle} degrees" for angle in range(0, 90, 15)]
)

# %% [markdown]
"""`dalify.lazy` is a mode between immediate calls and pipelines: calls are recorded until a value is needed. The
recorded calls are one graph, which is optimized by the same passes as the graph of a pipeline. Graphs of the same
structure are planned once, for any number and size of images.
"""

# %%
for count in (6, 4, 6):
    with dalify.lazy():
        small = eager.resize(eager.batch([photo] * count), resize_shorter=160)
        normal = eager.crop_mirror_normalize(small, crop=[128, 128], mean=[128.0], std=[64.0])
        eager.gaussian_blur(small, window_size=5)  # pruned: no variable refers to the result
    print(count, "images, mean", round(float(np.asarray(normal).mean()), 3))
counts = dalify.lazy.statistics()
print(f"plans created: {counts.plans_made}, reused: {counts.plans_reused}; calls pruned: {counts.operators_pruned}")

# %% [markdown]
"""## 2. The function, step by step

With `debug=True` the function of a pipeline runs again for each batch, operator by operator, with the values of that
batch. `print`, `.get()` and breakpoints work as in any function. Random numbers and order are the same as without
`debug`, so the results are the same.
"""


# %%
def prepared():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="photos")
    images = fn.resize(fn.decoders.image(encoded), size=[96, 128], name="resized")
    level = fn.reductions.mean(images, dtype=types.FLOAT)
    if level < 100:
        images = fn.brightness(images, brightness=1.5)
    return images, labels


def prepared_and_looked_at():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="photos")
    images = fn.resize(fn.decoders.image(encoded), size=[96, 128], name="resized")
    level = fn.reductions.mean(images, dtype=types.FLOAT)
    print("  levels:", np.round(level.get().as_array().ravel(), 1))
    if level < 100:
        print("  dark ones in this batch:", len(images.get()))
        images = fn.brightness(images, brightness=1.5)
    return images, labels


options = {"batch_size": 4, "num_threads": 2, "seed": 3}
looked_at = pipeline_def(prepared_and_looked_at, debug=True, **options)()
for number in range(2):
    print(f"batch {number}:")
    images, labels = looked_at.run()

pipe = pipeline_def(prepared, **options)()
pipe.run()
same, _ = pipe.run()
assert np.array_equal(same.as_array(), images.as_array()), "the second batches of both pipelines differ"

# %% [markdown]
"""## 3. An intermediate value

To read an intermediate value of a pipeline at full speed, tap it: specify a name for the operator and request that
name. The outputs do not change.
"""

# %%
pipe = pipeline_def(prepared, taps=["resized"], **options)()
images, labels = pipe.run()
before = pipe.tap("resized")
pairs = [array for index in range(4) for array in (before.as_array()[index], images.as_array()[index])]
captions = [f"{CLASSES[labels.at(index).item()]}, {when}" for index in range(4) for when in ("before", "after")]
contact_sheet(OUT / "11_tap.png", pairs, captions)

# %% [markdown]
"""## 4. Changes to the graph

`explain()` lists the changes of each pass and the reasons: which operators were pruned, merged or moved, and the line
of each in your code. Here a resize computes only the window of the crop after it, and two equal operators are merged.
"""


# %%
@pipeline_def(**options)
def with_work_to_save():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), name="photos")
    images = fn.decoders.image(encoded)
    again = fn.decoders.image(encoded)
    large = fn.resize(images, resize_shorter=160)
    forgotten = fn.gaussian_blur(large, window_size=5)  # noqa: F841 - no output needs it
    return fn.crop_mirror_normalize(large, crop=[128, 128]), fn.reductions.mean(again), labels


pipe = with_work_to_save()
print(pipe.explain())
pipe.save_graph_to_svg_file(OUT / "11_graph.svg")

# %% [markdown]
"""## 5. Locating an error

An error names the operator, the line of your code, the sample, and its file. Then use `eager` with that file only.
"""

# %%
damaged = OUT / "looking"
(damaged / "cat").mkdir(parents=True, exist_ok=True)
whole = (FOLDER / "cat" / "001.jpg").read_bytes()
(damaged / "cat" / "0.jpg").write_bytes(whole)
(damaged / "cat" / "1.jpg").write_bytes(whole[:100])


@pipeline_def(batch_size=2, num_threads=1)
def reads_damaged():
    encoded, _ = fn.readers.file(file_root=str(damaged))
    return fn.decoders.image(encoded)


try:
    reads_damaged().run()
except DalifyError as error:
    print(f"{type(error).__name__}: {error}")
try:
    eager.decoders.image((damaged / "cat" / "1.jpg").read_bytes())
except DalifyError as error:
    print(f"\nthis file only: {type(error).__name__}: {error}")

# %% [markdown]
"""| question | tool |
|---|---|
| what does this operator do to my image? | `dalify.eager` |
| can a loop of immediate calls be faster? | `with dalify.lazy():` |
| what are the values, line by line? | `@pipeline_def(debug=True)`, `print`, `.get()`, breakpoints |
| what is this value in the running pipeline? | `taps=["name"]`, `pipe.tap("name")` |
| what is executed, and why? | `pipe.explain()`, `pipe.save_graph_to_svg_file(path)` |
| which samples were bad? | `on_error="skip"`, `pipe.bad_samples()` |

Back to the list: [README](../README.md).
"""
