# %% [markdown]
"""# An operator of your own

dalify has about 150 operators. This tutorial adds one: a *lens*, which magnifies a disk of each image. It becomes
a member of `fn` like the others: documented, checked, fast, and usable in conditions, without a pipeline and in worker
processes.
"""

# %%
import inspect
from pathlib import Path

import numpy as np

from contact_sheets import contact_sheet
from dalify import eager, fn, pipeline_def, types
from dalify.base.errors import DalifyError
from dalify.custom import PerSample, Spec, operator
from photos import make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)

# %% [markdown]
"""## 1. The definition

The signature is the schema: inputs before `/`, arguments after `*`, with types and defaults. `PerSample` lets an
argument vary from image to image. The docstring is the documentation. The body is the *rule*: it returns the type and
shape of the result. Here they are those of the input, so it returns its input.
"""


# %%
@operator(name="optics.lens")
def lens(
    images: Spec,
    /,
    *,
    center: PerSample[list[float]] = [0.5, 0.5],  # noqa: B006 - not changed
    radius: PerSample[float] = 0.3,
    zoom: PerSample[float] = 2.0,
) -> Spec:
    """Magnify a disk of each image.

    Args:
        images: images HWC.
        center: center of the disk (y, x), as fractions of height and width.
        radius: radius of the disk, a fraction of the shorter side.
        zoom: magnification in the center of the disk, at least 1.
    """
    if images.layout not in ("HWC", "", None):  # "" has no layout, None is not known yet
        raise ValueError(f"images must be HWC; the layout is {images.layout!r}")
    return images


# %% [markdown]
"""## 2. The function

It is called with groups of images of one shape: `images` and `out` are arrays `[N, H, W, C]`. Arguments that vary are
arrays as well: `radius` is `[N]`, `center` is `[N, 2]`. So NumPy computes all images of a group in one call.
"""


# %%
@lens.cpu
def _(out, images, *, center, radius, zoom):
    count, height, width = images.shape[:3]
    y, x = np.ogrid[:height, :width]
    middle = center * np.float32([height, width])
    dy = y[None] - middle[:, 0, None, None]
    dx = x[None] - middle[:, 1, None, None]
    distance = np.hypot(dy, dx) / (radius * min(height, width))[:, None, None]
    # 1 / zoom in the center, 1 at the border of the disk and outside of it.
    scale = np.minimum(1, (1 / zoom + (1 - 1 / zoom) * distance.transpose(1, 2, 0) ** 2).transpose(2, 0, 1))
    rows = np.clip(np.rint(middle[:, 0, None, None] + dy * scale), 0, height - 1).astype(np.intp)
    columns = np.clip(np.rint(middle[:, 1, None, None] + dx * scale), 0, width - 1).astype(np.intp)
    out[...] = images[np.arange(count)[:, None, None], rows, columns]


# %% [markdown]
"""## 3. Try it

Without a pipeline: one image, several values.
"""

# %%
photo = eager.resize(eager.decoders.image((FOLDER / "cat" / "000.jpg").read_bytes()), size=[160, 200])
zooms = (1.0, 1.5, 2.0, 4.0)
lenses = eager.optics.lens(eager.batch([photo] * 4), zoom=eager.batch([np.float32(zoom) for zoom in zooms]), radius=0.5)
contact_sheet(OUT / "15_lens.png", [np.asarray(image) for image in lenses], [f"zoom {zoom}" for zoom in zooms])
assert np.array_equal(np.asarray(lenses[0]), photo), "a lens of zoom 1 changes nothing"

print("fn.optics.lens" + str(inspect.signature(fn.optics.lens)))
print(inspect.getdoc(fn.optics.lens))

# %% [markdown]
"""## 4. In a pipeline

Graph values as arguments, conditions and several threads need no further code. `explain()` lists the operator with the
line of its call.
"""


# %%
@pipeline_def(batch_size=6, num_threads=2, seed=4)
def augmented():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    images = fn.resize(fn.decoders.image(encoded), size=[160, 160])
    if fn.random.coin_flip(probability=0.7, dtype=types.BOOL):
        images = fn.optics.lens(images, center=fn.random.uniform(range=[0.3, 0.7], shape=[2]), zoom=3.0, radius=0.5)
    return images, labels


pipe = augmented()
images, labels = pipe.run()
contact_sheet(OUT / "15_augmented.png", list(images.as_array()), [str(label) for label in labels.as_array().ravel()])
print(pipe.explain())

# %% [markdown]
"""## 5. A function for the GPU

`@lens.gpu` attaches a function for torch tensors. Without one, `device="gpu"` also works: the operator then runs on
the CPU, and `explain()` reports it. The example is a simpler operator, whose rule changes the element type to float.
"""


# %%
@operator(name="optics.exposure")
def exposure(images: Spec, /, *, stops: PerSample[float] = 0.0) -> Spec:
    """Scale images by a power of two.

    Args:
        images: images of any type.
        stops: logarithm of the factor, base 2.
    """
    return images.replace(dtype=types.FLOAT)


@exposure.cpu
def _(out, images, *, stops):
    np.multiply(images, np.exp2(stops).reshape(-1, 1, 1, 1), out=out)


@exposure.gpu
def _(out, images, *, stops):
    factors = out.new_tensor(2.0**stops).reshape(-1, 1, 1, 1)
    out.copy_(images.float() * factors)


brighter = eager.optics.exposure(photo, stops=1.0)
assert brighter.dtype == np.float32
assert np.array_equal(brighter, photo * np.float32(2))

# %% [markdown]
"""## 6. Errors

A misspelled argument, a rule that rejects its input and a function that fails raise the same errors as for other
operators. All name the line of the call.
"""

# %%
attempts = [
    lambda: eager.optics.lens(photo, zom=2.0),
    lambda: eager.optics.lens(photo.transpose(2, 0, 1), layout="CHW"),
    lambda: eager.optics.lens(photo, center=[0.5, 0.5, 0.5]),
]
for attempt in attempts:
    try:
        attempt()
        raise SystemExit("no error")
    except DalifyError as error:
        print(f"{type(error).__name__}: {error}\n")

# %% [markdown]
"""[docs/custom_operators.md](../docs/custom_operators.md) describes the other features: shapes that depend on
arguments or values, random numbers, several outputs, worker processes, serialization.

Back to the list: [README](../README.md).
"""
