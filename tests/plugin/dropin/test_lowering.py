"""Plans compared with torchvision's transforms: same values, types, memory order, errors, and random numbers drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.plan import TransformPlan
from dalify.plugin.pytorch.dropin.torchvision_steps import TorchvisionStep
from tests.helpers.torchvision_import import import_torchvision

v1 = import_torchvision("torchvision.transforms")
v2 = import_torchvision("torchvision.transforms.v2")
presets = import_torchvision("torchvision.transforms._presets")

pytestmark = [
    pytest.mark.filterwarnings("ignore:The transform `ToTensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Anti-alias option is always applied:UserWarning"),
]

FLOAT = torch.float32
MEAN, DEVIATION = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
Mode = v1.InterpolationMode


def images(channels: int = 3) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    coarse = Image.fromarray(generator.integers(0, 256, (9, 11, 3), dtype=np.uint8))
    sizes = (80, 64), (61, 90)
    return [np.asarray(coarse.resize(size, Image.Resampling.BICUBIC))[..., :channels] for size in sizes]


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def check(transform: Any, channels: int = 3, seeds: int = 2) -> TransformPlan:
    plan = lower_transform(transform, channels)
    for pixels in images(channels):
        image = Image.fromarray(pixels if channels == 3 else pixels[..., 0])
        for seed in range(seeds):
            torch.manual_seed(seed)
            expected = outcome(lambda image=image: transform(image))
            state = torch.get_rng_state()
            draws = TorchDraws(torch.Generator().manual_seed(seed))
            picture = LazyImage(lambda rows, pixels=pixels: pixels[:rows].copy(), *pixels.shape[:2])

            def run(picture: LazyImage = picture, draws: TorchDraws = draws) -> Any:
                return plan.sample(picture, draws)

            found = outcome(run)
            assert type(found) is type(expected)
            if isinstance(expected, Exception):
                continue
            assert plan.is_complete, plan.reason
            assert torch.equal(draws.generator.get_state(), state)
            assert torch.equal(torch.get_rng_state(), state)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert torch.equal(found, expected)
            if not plan.tensor_transforms and len(found) > 1 and expected.dtype != torch.uint8:
                assert found.stride() == expected.stride()
    return plan


GEOMETRY_2 = [
    v2.Resize(40),
    v2.Resize((30, 20), interpolation=3),
    v2.Resize(None, max_size=50),
    v2.Resize([33], max_size=40),
    v2.CenterCrop(70),
    v2.RandomCrop(40),
    v2.RandomCrop((61, 30)),
    v2.RandomCrop((64, 50), padding=[3, 2, 1, 0], pad_if_needed=True, fill=(1, 2, 3)),
    v2.RandomCrop(95, pad_if_needed=True, padding_mode="reflect"),
    v2.RandomCrop(100, padding=3, pad_if_needed=True, padding_mode="symmetric"),
    v2.RandomCrop(100),
    v2.RandomResizedCrop(32),
    v2.RandomResizedCrop(32, interpolation="nearest-exact"),
    v2.RandomResizedCrop((32, 20), interpolation=2, antialias=False),
    v2.Pad([1, 2], fill=[3, 4, 5]),
    v2.Pad([1, 2, 3, 4], padding_mode="edge"),
    v2.Pad(3, fill=None),
    v2.Pad(2, fill={torch.Tensor: 3, "others": 5}),
    v2.Grayscale(3),
    v2.RGB(),
    v2.Identity(),
    v2.RandomHorizontalFlip(),
    v2.RandomVerticalFlip(0.3),
    v2.RandomGrayscale(0.5),
]
GEOMETRY_1 = [
    v1.Resize(40),
    v1.Resize((30, 20), interpolation=Mode.BICUBIC),
    v1.CenterCrop(70),
    v1.RandomCrop((61, 30)),
    v1.RandomCrop((64, 50), padding=[3, 2, 1, 0], pad_if_needed=True, fill=1),
    v1.RandomResizedCrop(32),
    v1.RandomResizedCrop(32, antialias=False),
    v1.Pad(3, padding_mode="reflect"),
    v1.Pad(2, fill=(1, 2, 3)),
    v1.Grayscale(3),
    v1.RandomVerticalFlip(),
    v1.RandomGrayscale(0.5),
    v1.RandomInvert(),
    v1.RandomSolarize(100),
    v1.RandomPosterize(3),
]


def named(transform: Any) -> str:
    return f"{type(transform).__name__}-{getattr(transform, 'padding_mode', '')}{getattr(transform, 'size', '')}"


@pytest.mark.parametrize("stage", GEOMETRY_2, ids=named)
def test_version_2_on_images_and_on_tensors(stage):
    first, *after = v2.ToImage(), v2.ToDtype(FLOAT, scale=True), v2.Normalize(MEAN, DEVIATION)
    check(v2.Compose([stage, first, *after]))
    check(v2.Compose([first, stage, *after]))
    check(v2.Compose([first, after[0], stage, after[1]]))
    check(v2.Compose([v2.PILToTensor(), stage, v2.RandomHorizontalFlip(), after[0]]))


@pytest.mark.parametrize("stage", GEOMETRY_1, ids=named)
def test_version_1_on_images_and_on_tensors(stage):
    normalize = v1.Normalize(MEAN, DEVIATION)
    check(v1.Compose([stage, v1.ToTensor(), normalize]))
    check(v1.Compose([v1.PILToTensor(), stage, v1.ConvertImageDtype(FLOAT), normalize]))
    check(v1.Compose([v1.ToTensor(), stage, v1.RandomHorizontalFlip(), normalize]))


def colors(version: Any) -> list[Any]:
    return [
        version.AutoAugment(),
        version.ColorJitter(0.4, 0.4, 0.4, 0.1),
        version.ElasticTransform(),
        version.GaussianBlur(5),
        version.RandAugment(),
        version.RandomAdjustSharpness(2),
        version.RandomAffine(10, (0.1, 0.1), (0.5, 1), 10),
        version.RandomApply([version.ColorJitter(0.3), version.RandomCrop(30)]),
        version.RandomAutocontrast(),
        version.RandomEqualize(),
        version.RandomPerspective(),
        version.RandomPosterize(3),
        version.RandomRotation(30),
        version.TrivialAugmentWide(),
    ]


@pytest.mark.parametrize("stage", colors(v1), ids=named)
def test_torchvision_does_the_work_version_1(stage):
    after = v1.RandomHorizontalFlip(), v1.PILToTensor(), v1.ConvertImageDtype(FLOAT)
    check(v1.Compose([v1.RandomResizedCrop(48), stage, *after, v1.RandomErasing(0.5, value="random")]))


@pytest.mark.parametrize("stage", colors(v2), ids=named)
def test_torchvision_does_the_work_version_2(stage):
    after = v2.RandomCrop(30, pad_if_needed=True), v2.ToImage(), v2.ToDtype(FLOAT, scale=True)
    check(v2.Compose([v2.Resize(48), stage, *after, v2.RandomErasing(0.5, inplace=True), v2.ToPureTensor()]))


@pytest.mark.parametrize("version", [v1, v2])
def test_color_by_kernels(version):
    jitters = [
        version.ColorJitter(brightness=0.5),
        version.ColorJitter(contrast=(0.2, 2.5), saturation=0.9),
        version.ColorJitter(hue=0.5),
        version.ColorJitter(1, 1, 1, 0.3),
        version.ColorJitter(),
    ]
    some = version.RandomApply([version.ColorJitter(0.8, 0.8, 0.8, 0.2), version.RandomHorizontalFlip()], p=0.8)
    plan = check(version.Compose([version.RandomResizedCrop(40), *jitters, some, version.PILToTensor()]), seeds=12)
    assert not any(isinstance(step, TorchvisionStep) for step in plan.steps)
    check(version.Compose([version.RandomGrayscale(0.5), *jitters, version.PILToTensor()]), seeds=6)
    check(version.Compose([*jitters, version.PILToTensor()]), channels=1, seeds=6)


@pytest.mark.parametrize("version", [v1, v2])
@pytest.mark.parametrize("probability", [0, 0.5, 1])
def test_the_limit_of_random_apply(version, probability, monkeypatch):
    transform = version.RandomApply([version.RandomHorizontalFlip(1.0)], probability)
    (step,) = lower_transform(transform, 3).steps
    image = Image.fromarray(images()[0])
    for number in (0.0, 0.25, 0.5, 0.5 + 2**-24, 1 - 2**-24):
        monkeypatch.setattr(torch, "rand", lambda *arguments, number=number, **options: torch.tensor([number]))
        picture = LazyImage(images()[0])
        step.apply(picture, TorchDraws(torch.Generator()))
        assert np.array_equal(picture.pixels(), np.asarray(transform(image)))


def test_what_only_version_2_has():
    choice = v2.RandomChoice([v2.RandomInvert(), v2.RandomCrop(30)], p=[0.3, 0.7])
    order = v2.RandomOrder([v2.RandomSolarize(99), v2.RandomPosterize(2)])
    color = v2.RandomPhotometricDistort(), v2.JPEG((20, 80)), v2.RandomChannelPermutation()
    size = v2.RandomZoomOut(), v2.RandomResize(30, 60), v2.ScaleJitter((50, 50)), v2.RandomShortestSize([30, 40], 90)
    check(v2.Compose([choice, order, *color, *size, v2.ToImage(), v2.ToDtype(FLOAT)]), seeds=6)
    check(v2.Compose([v2.ToDtype(FLOAT), v2.ToImage(), v2.ToDtype({torch.Tensor: None, "others": FLOAT}, scale=True)]))


def test_compositions():
    ends = v1.ToTensor(), v1.Normalize(MEAN, DEVIATION)
    geometry = torch.nn.Sequential(v1.Resize(40), v1.CenterCrop(30))
    plan = check(v1.Compose([geometry, v1.Compose(ends)]))
    assert plan.names == ("Resize", "CenterCrop", "ToTensor", "Normalize")
    assert not plan.is_random
    check(v2.Compose([geometry, v2.Compose([v2.RandomHorizontalFlip()]), v2.ToTensor()]))
    plan = check(v1.Compose([v1.AutoAugment(), v1.RandomOrder([v1.RandomInvert()]), *ends, v1.RandomErasing()]))
    names = (
        "AutoAugment (torchvision)",
        "RandomOrder (torchvision)",
        "ToTensor",
        "Normalize",
        "RandomErasing (torchvision)",
    )
    assert plan.names == names
    check(presets.ImageClassification(crop_size=30, resize_size=40))
    check(presets.ImageClassification(crop_size=(30,)[0], resize_size=40, interpolation=Mode.BICUBIC))


@pytest.mark.parametrize("stage", [v1.RandomHorizontalFlip(), v1.RandomErasing(), v2.RandomApply([v1.RandomInvert()])])
def test_version_1_behind_version_2(stage):
    check(v2.Compose([v2.ToImage(), stage, v2.RandomVerticalFlip(), v2.ToDtype(FLOAT)]), seeds=6)
    check(v2.Compose([v2.ToImage(), v2.ToDtype(FLOAT), stage, v2.Identity()]), seeds=6)


ANYWHERE = st.sampled_from([*GEOMETRY_1, *GEOMETRY_2, v1.ColorJitter(0.5, 0.5), v2.ColorJitter(hue=0.2)])
TO_TENSOR = st.sampled_from([v1.ToTensor(), v1.PILToTensor(), v2.ToImage(), v2.PILToTensor()])
BEHIND = st.sampled_from(
    [
        v1.ConvertImageDtype(FLOAT),
        v2.ToDtype(FLOAT, scale=True),
        v1.Normalize(MEAN, DEVIATION),
        v2.Normalize(MEAN, DEVIATION),
        v1.RandomErasing(),
        v2.RandomErasing(value=7),
        v2.ToImage(),
        v2.ToPureTensor(),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ANYWHERE, max_size=3), TO_TENSOR, st.lists(st.one_of(BEHIND, ANYWHERE), max_size=3), st.booleans())
def test_any_order_of_both_versions(before, to_tensor, behind, is_gray):
    transform = v1.Compose([*before, to_tensor, *behind])
    channels = 1 if is_gray else 3
    assume(lower_transform(transform, channels).is_complete)
    check(transform, channels, seeds=1)


@pytest.mark.parametrize("resize", [v2.Resize(20), v2.RandomResizedCrop(20), v1.Resize(20)])
def test_tensors_of_cropped_images_are_contiguous(resize):
    """The memory layout of torch's results depends on that of the tensor."""
    check(v1.Compose([v1.CenterCrop(40), v1.PILToTensor(), resize, v1.ConvertImageDtype(FLOAT)]))
    check(v2.Compose([v2.PILToTensor(), v2.RandomCrop(40), resize, v2.ToDtype(FLOAT)]))


def test_gray_images():
    check(v2.Compose([v2.RGB(), v2.Resize(20), v2.ToTensor(), v1.Normalize(MEAN, DEVIATION)]), channels=1)
    check(v2.Compose([v2.ToImage(), v2.RGB(), v2.RandomHorizontalFlip(), v2.ToDtype(FLOAT)]), channels=1)
    check(v1.Compose([v1.Grayscale(3), v1.ColorJitter(0.3), v1.ToTensor()]), channels=1)
    check(v1.Compose([v1.RandomRotation(9), v1.ToTensor(), v1.Normalize(0.5, 0.25)]), channels=1)
    check(v1.Compose([v1.ToTensor(), v1.Grayscale(1)]))
    check(v1.Compose([v1.PILToTensor(), v1.Grayscale(1), v1.RandomCrop(30)]))
    # Version 1 leaves tensors with one channel as they are.
    check(v1.Compose([v1.PILToTensor(), v1.Grayscale(3), v1.CenterCrop((70, 70))]), channels=1)
    check(v2.Compose([v2.PILToTensor(), v2.Grayscale(3), v2.CenterCrop((70, 70))]), channels=1)


class Doubled(v1.ToTensor):
    """Not supported, because a subclass may override anything."""


def with_hook() -> Any:
    transform = v1.RandomHorizontalFlip()
    transform.register_forward_hook(lambda module, inputs, output: output)
    return transform


def with_forward() -> Any:
    transform = v2.Resize(9)
    transform.transform = lambda image, parameters: image
    return transform


@pytest.mark.parametrize(
    ("stages", "known", "reason"),
    [
        ([lambda image: image, v1.ToTensor()], 0, "not supported"),
        ([v1.Resize(9), v1.Lambda(np.asarray)], 1, "transform\\[1\\] is torchvision.transforms.transforms.Lambda"),
        ([v1.Resize(9), v1.ToTensor(), Doubled()], 2, "not supported"),
        ([v1.Resize(9), with_hook(), v1.ToTensor()], 1, "hooks"),
        ([with_forward(), v1.ToTensor()], 0, "its own forward"),
        ([v1.ToTensor(), v1.ColorJitter(0.3)], 1, "works on tensors"),
        ([v1.PILToTensor(), v1.ColorJitter(0.3)], 1, "not supported on tensors"),
        ([v1.ToTensor(), v1.RandomErasing(), lambda tensor: tensor], 1, "not supported"),
        ([v1.RandomApply([v1.Lambda(np.asarray)]), v1.ToTensor()], 0, "not supported"),
        ([v1.RandomOrder([v1.Lambda(np.asarray)]), v1.ToTensor()], 0, "not supported"),
        ([v1.RandomApply([v1.Grayscale(1)]), v1.ToTensor()], 0, "not supported"),
        ([v2.RandomChoice([v2.RGB(), v2.Identity()]), v1.ToTensor()], 0, "not supported"),
        ([v1.Normalize(0.5, 0.5)], 0, "rejects such images"),
        ([v1.ToTensor(), v1.Normalize((0.5, 0.5), (1, 1))], 1, "rejects such images"),
        ([v1.Resize(9)], 1, "end with Pillow images"),
    ],
)
def test_unsupported_transforms_are_listed(stages, known, reason):
    plan = lower_transform(v1.Compose(stages), 3)
    assert not plan.is_complete
    assert plan.unsupported == tuple(stages[known:])
    assert not plan.tensor_transforms
    with pytest.raises(ValueError, match=reason):
        raise ValueError(plan.reason and plan.reason.text)
    picture = LazyImage(images()[0].copy())
    draws = TorchDraws(torch.default_generator)
    found = plan.sample(picture, draws)
    if plan.table is None:
        expected = v1.Compose(stages[:known])(Image.fromarray(images()[0]))
        assert np.array_equal(np.asarray(found), np.asarray(expected))
        assert found.mode == expected.mode


def test_no_transform_gives_the_image():
    plan = lower_transform(None, 1)
    assert "no transform" in plan.reason.text
    found = plan.sample(LazyImage(images(1)[0]), TorchDraws(torch.default_generator))
    assert found.mode == "L"
    assert np.array_equal(np.asarray(found), images(1)[0][..., 0])
