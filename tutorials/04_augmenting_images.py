# %% [markdown]
"""# Augmenting images

This tutorial shows color, geometry and noise operators, and automatic augmentation policies. Each section writes a
contact sheet: a grid of images with captions that state the augmentations.
"""

# %%
import time
from pathlib import Path

import numpy as np

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from dalify.auto_aug import augmentations as a
from dalify.auto_aug import auto_augment, trivial_augment
from dalify.auto_aug.core import Policy, augmentation
from photos import make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
SIZE = 160


def squares():
    """Read photographs, resize the shorter side and crop a square: the input of all pipelines below."""
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    return fn.crop(fn.resize(images, resize_shorter=SIZE), crop=[SIZE, SIZE])


# %% [markdown]
"""## 1. One photograph, many operators

`fn.color_twist` changes brightness, contrast, saturation and hue in one step. It computes in floating point and rounds
once; three separate operators round three times. Each argument is a number, or a graph value with one number per
sample, for instance a random number.
"""

# %%
COLORS = {
    "unchanged": lambda x: x,
    "brightness=1.4": lambda x: fn.brightness(x, brightness=1.4),
    "contrast=0.5": lambda x: fn.contrast(x, contrast=0.5),
    "saturation=2": lambda x: fn.saturation(x, saturation=2.0),
    "saturation=0": lambda x: fn.saturation(x, saturation=0.0),
    "hue=60": lambda x: fn.hue(x, hue=60.0),
    "color_twist, all": lambda x: fn.color_twist(x, brightness=1.1, contrast=1.2, saturation=1.5, hue=20.0),
    "equalize": fn.equalize,
}
SHAPES = {
    "flip": fn.flip,
    "rotate, angle=20": lambda x: fn.rotate(x, angle=20.0, fill_value=128, keep_size=True),
    "rotate, larger canvas": lambda x: fn.resize(fn.rotate(x, angle=20.0, fill_value=128), size=[SIZE, SIZE]),
    "warp_affine, shear": lambda x: fn.warp_affine(
        x, fn.transforms.shear(shear=[0.3, 0.0], center=[SIZE / 2, SIZE / 2]), fill_value=128
    ),
    "random_resized_crop": lambda x: fn.random_resized_crop(x, size=SIZE, random_area=[0.1, 0.4], seed=4),
    "water": lambda x: fn.water(x, ampl_x=6.0, ampl_y=6.0),
    "sphere": fn.sphere,
    "warp_perspective": lambda x: fn.experimental.warp_perspective(
        x, matrix=[1.0, 0.2, -10.0, 0.0, 1.2, -10.0, 0.0, 0.0015, 0.9], fill_value=128
    ),
}
DAMAGES = {
    "gaussian_blur": lambda x: fn.gaussian_blur(x, sigma=2.5),
    "noise.gaussian": lambda x: fn.noise.gaussian(x, stddev=30.0),
    "noise.salt_and_pepper": lambda x: fn.noise.salt_and_pepper(x, prob=0.08),
    "noise.shot": lambda x: fn.noise.shot(x, factor=30.0),
    "jpeg, quality=5": lambda x: fn.jpeg_compression_distortion(x, quality=5),
    "erase": lambda x: fn.erase(x, anchor=[0.3, 0.3], shape=[0.4, 0.4], normalized=True, axis_names="HW"),
    "grid_mask": lambda x: fn.grid_mask(x, tile=40, ratio=0.5, angle=0.3),
    "laplacian": lambda x: fn.cast(fn.laplacian(x, window_size=5) + 128.0, dtype=types.UINT8),
}


def sheet_of(operators: dict, file_name: str, columns: int = 8) -> None:
    """Apply each operator to the same photograph."""

    @pipeline_def(batch_size=1, num_threads=2, seed=8)
    def one_photograph():
        image = squares()
        return tuple(operator(image) for operator in operators.values())

    outputs = one_photograph().run()
    contact_sheet(OUT / file_name, [output.at(0) for output in outputs], list(operators), columns=columns)


sheet_of(COLORS, "04_colors.png")
sheet_of(SHAPES, "04_shapes.png")
sheet_of(DAMAGES, "04_damages.png")

# %% [markdown]
"""Geometric operators have two pitfalls. `fn.rotate` enlarges the canvas unless `keep_size=True`. `warp_affine` expects
the matrix from *output to source* (`inverse_map=True`, as in DALI): a matrix that enlarges shrinks the image.

## 2. Random augmentations per sample

A condition on a graph value is evaluated per sample: the operators of a branch process only the photographs of that
branch.
"""


# %%
@pipeline_def(batch_size=16, num_threads=2, seed=6)
def sometimes():
    images = squares()
    is_turned = fn.random.coin_flip(probability=0.5, dtype=types.BOOL)
    if is_turned:
        images = fn.rotate(images, angle=fn.random.uniform(range=[-30, 30]), fill_value=128, keep_size=True)
    else:
        images = fn.color_twist(images, hue=fn.random.uniform(range=[-90, 90]))
    return images, is_turned


images, is_turned = sometimes().run()
captions = ["rotated" if flag else "recolored" for flag in is_turned.as_array()]
contact_sheet(OUT / "04_sometimes.png", list(images.as_array()), captions)

# %% [markdown]
"""## 3. Automatic augmentation

`trivial_augment_wide` applies one of 14 augmentations with a random magnitude to each sample. `rand_augment` applies
`n` of them with magnitude `m`. `auto_augment` follows a policy that was found by search. They accept uint8 images or
sequences; all frames of a sequence are augmented equally. AutoAugment translates by up to 250 pixels, which moves small
images out of the frame; with `shape`, translations are fractions of the size of each image.
"""


# %%
@pipeline_def(batch_size=16, num_threads=2, seed=3)
def chosen():
    images = squares()
    size = {"shape": [SIZE, SIZE], "max_translate_rel": 0.45}
    return trivial_augment.trivial_augment_wide(images, **size), auto_augment.auto_augment(images, **size)


trivial, auto = chosen().run()
contact_sheet(
    OUT / "04_schemes.png",
    [*trivial.as_array(), *auto.as_array()],
    ["TrivialAugment"] * 16 + ["AutoAugment"] * 16,
)

# %% [markdown]
"""An augmentation has a range of magnitudes, which is divided into bins: bin 0 is the weakest in TrivialAugment's
ranges. Call an augmentation with the bin and the number of bins. With `randomly_negate=False` the direction is fixed.
"""

# %%
BINS = 8
STRIP = [a.rotate.augmentation(randomly_negate=False), a.posterize.augmentation(mag_range=(8, 1)), a.solarize]
sheet_of(
    {
        f"{one.name}, bin {level}": lambda x, one=one, level=level: one(x, magnitude_bin=level, num_magnitude_bins=BINS)
        for one in STRIP
        for level in range(BINS)
    },
    "04_magnitudes.png",
)

# %% [markdown]
"""## 4. Custom augmentations and policies

`@augmentation` converts a function of the data and a parameter to an augmentation. `mag_to_param` computes the
parameter of each bin once, when the pipeline is defined. A policy is a list of sub-policies. A step of a sub-policy
contains an augmentation, its probability, and a bin (None for augmentations without magnitudes).
"""


# %%
@augmentation(mag_range=(0.5, 6.0))
def out_of_focus(data, sigma):
    return fn.gaussian_blur(data, sigma=sigma)


@augmentation(mag_range=(0.05, 0.45), mag_to_param=lambda part: np.array([part, part], np.float32))
def window(data, part):
    return fn.erase(data, anchor=0.5 - part / 2, shape=part, normalized=True, axis_names="HW", fill_value=0.0)


POLICY = Policy(
    "focus and window",
    num_magnitude_bins=11,
    sub_policies=[[(out_of_focus, 0.8, 5), (window, 0.8, 8)], [(a.color, 1.0, 10)], [(a.invert, 0.5, None)]],
)


@pipeline_def(batch_size=16, num_threads=2, seed=8)
def by_own_policy():
    return auto_augment.apply_auto_augment(POLICY, squares())


(images,) = by_own_policy().run()
contact_sheet(OUT / "04_own_policy.png", list(images.as_array()), ["own policy"] * 16)

# %% [markdown]
"""## 5. Cost

Samples are split into the branches of their augmentations and merged once, for any number of augmentations. So a
policy costs about as much as the one operator that is applied to each sample.
"""


# %%
def milliseconds(use_scheme: bool) -> float:
    """Return the CPU time of a batch of 96 photographs, summed over all threads."""

    @pipeline_def(batch_size=96, num_threads=2, seed=1)
    def timed():
        images = squares()
        return trivial_augment.trivial_augment_wide(images) if use_scheme else images

    pipe = timed()
    for _ in range(3):
        pipe.run()
    start = time.process_time()
    for _ in range(5):
        pipe.run()
    return (time.process_time() - start) / 5 * 1000


print(f"CPU time to read, decode and resize 96 photographs: {milliseconds(False):.0f} ms")
print(f"the same with TrivialAugment:                       {milliseconds(True):.0f} ms")

# %% [markdown]
"""Next: [05_boxes_and_masks.py](05_boxes_and_masks.py)."""
