"""Compose and its transforms compared with torchvision's and DALI's where they run on a CPU."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import dalify.experimental.torchvision as ours
from dalify.experimental.torchvision import Compose
from tests.experimental.torchvision.images import HEIGHT, KINDS, WIDTH, difference, image

Make = Callable[[Any], list[Any]]  # from a module of transforms to transforms

# Deterministic transforms, and the tolerance to torchvision in levels of 255.
CHAINS: dict[str, tuple[Make, float]] = {
    "resize": (lambda t: [t.Resize((20, 33))], 3),
    "resize-shorter": (lambda t: [t.Resize(25, max_size=30)], 3),
    "resize-longest": (lambda t: [t.Resize(None, max_size=44)], 3),
    "resize-number": (lambda t: [t.Resize([20, 33], 3)], 4),
    "center-crop": (lambda t: [t.CenterCrop((20, 31))], 0),
    "center-crop-larger": (lambda t: [t.CenterCrop((50, 31))], 0),
    "pad": (lambda t: [t.Pad((3, 4, 5, 6), 7)], 0),
    "pad-none": (lambda t: [t.Pad(2, None)], 0),
    "pad-reflect": (lambda t: [t.Pad(5, padding_mode="reflect")], 0),
    "pad-edge": (lambda t: [t.Pad((1, 2), padding_mode="edge")], 0),
    "pad-symmetric": (lambda t: [t.Pad((1, 2), padding_mode="symmetric")], 0),
    "horizontal": (lambda t: [t.RandomHorizontalFlip(1.0)], 0),
    "vertical": (lambda t: [t.RandomVerticalFlip(p=1.0)], 0),
    "never": (lambda t: [t.RandomHorizontalFlip(0.0), t.RandomVerticalFlip(0.0), t.RandomGrayscale(0.0)], 0),
    "blur": (lambda t: [t.GaussianBlur(5, 1.2)], 1),
    "blur-oblong": (lambda t: [t.GaussianBlur((5, 3), 1.2)], 1),
    "whole-crop": (lambda t: [t.RandomCrop((HEIGHT, WIDTH))], 0),
    "whole-crop-padded": (lambda t: [t.RandomCrop((HEIGHT + 10, WIDTH + 10), padding=5, fill=3)], 0),
    "whole-window": (lambda t: [t.RandomResizedCrop((20, 30), (1.0, 1.0), (WIDTH / HEIGHT, WIDTH / HEIGHT))], 4),
    "apply": (lambda t: [t.RandomApply([t.Resize((20, 30)), t.RandomHorizontalFlip(1.0)], p=1.0)], 4),
    "apply-not": (lambda t: [t.RandomApply([t.Resize((20, 30)), t.RandomHorizontalFlip(1.0)], p=0.0)], 0),
    "several": (lambda t: [t.Resize(30), t.CenterCrop(24), t.RandomHorizontalFlip(1.0), t.Pad(2)], 3),
    "gray": (lambda t: [t.Grayscale()], 1.01),
    "gray-3": (lambda t: [t.Grayscale(3)], 1.01),
    "gray-sometimes": (lambda t: [t.RandomGrayscale(1.0)], 1.01),
    "brightness": (lambda t: [t.ColorJitter(brightness=(1.4, 1.4))], 1.01),
    "saturation": (lambda t: [t.ColorJitter(saturation=(0.3, 0.3))], 2.01),
}
COLORS = ("gray", "gray-3", "gray-sometimes", "brightness", "saturation")
# torchvision has no colors with alpha, and Pillow weighs colors by it where it resizes.
RESIZING = ("resize", "resize-shorter", "resize-longest", "resize-number", "whole-window", "apply", "several")
CASES = [(name, kind) for name in CHAINS for kind in KINDS if kind != "pil-RGBA" or name not in (*COLORS, *RESIZING)]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_compared_with_torchvision(reference, name, kind):
    make, tolerance = CHAINS[name]
    wanted = reference.Compose(make(reference))(image(kind))
    assert difference(Compose(make(ours))(image(kind)), wanted) <= tolerance


LIKE_TORCHVISION = ("center-crop-larger", "blur-oblong")
# DALI ends the process where a gray image gets other colors.
CRASHING = ("brightness", "saturation")


def _dali_takes(name: str, kind: str) -> bool:
    is_refused = name in COLORS and not (kind.startswith("pil") and not (name in CRASHING and kind == "pil-L"))
    return not is_refused and kind != "nested" and name not in LIKE_TORCHVISION


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if _dali_takes(*case)])
@pytest.mark.filterwarnings("ignore")
def test_compared_with_dali(theirs, name, kind):
    make, _ = CHAINS[name]
    wanted = theirs.Compose(make(theirs), device_id=None)(image(kind))
    assert difference(Compose(make(ours))(image(kind)), wanted) <= 1


@pytest.mark.parametrize("jitter", [{"contrast": (1.4, 1.4)}, {"hue": (0.05, 0.05)}, {"hue": (-0.2, -0.2)}])
@pytest.mark.filterwarnings("ignore")
def test_contrast_and_hue_equal_dali(theirs, jitter):
    wanted = theirs.Compose([theirs.ColorJitter(**jitter)], device_id=None)(image("pil-RGB"))
    found = Compose([ours.ColorJitter(**jitter)])(image("pil-RGB"))
    assert difference(found, wanted) <= 1
    tensor = Compose([ours.ColorJitter(**jitter)])(torch.from_numpy(np.array(image("pil-RGB"))).permute(2, 0, 1))
    assert torch.equal(tensor.permute(1, 2, 0), torch.from_numpy(np.array(found)))


@pytest.mark.parametrize("kind", ["f32-3", "batch-f32"])
def test_normalize(reference, kind):
    means = [0.4, 0.5, 0.6], np.array([0.2, 0.3, 0.1])
    wanted = reference.functional.normalize(image(kind), means[0], list(means[1]))
    assert difference(Compose([ours.Normalize(*means)])(image(kind)), wanted) <= 1e-3


@pytest.mark.parametrize("kind", ["pil-L", "pil-RGB"])
def test_tensors_of_pillow_images(reference, kind):
    for last in ("PILToTensor", "ToPureTensor"):
        found = Compose([ours.CenterCrop(20), getattr(ours, last)()])(image(kind))
        assert difference(found, reference.PILToTensor()(reference.CenterCrop(20)(image(kind)))) == 0


def test_pillow_images_of_tensors(reference):
    for kind in ("u8-3", "u8-1", "f32-3"):
        found = Compose([ours.CenterCrop(20), ours.ToPILImage()])(image(kind))
        wanted = reference.ToPILImage()(reference.CenterCrop(20)(image(kind)))
        assert difference(found, wanted) == 0
    several = Compose([ours.ToPILImage()])(image("batch-u8"))
    assert len(several) == 3
    assert all(isinstance(one, Image.Image) for one in several)


def test_no_transforms():
    assert torch.equal(Compose([])(image("batch-u8")), image("batch-u8"))


def test_sizes_and_types_may_change_between_calls(reference):
    compose = Compose([ours.Resize(20), ours.CenterCrop(18)])
    other = reference.Compose([reference.Resize(20), reference.CenterCrop(18)])
    for kind in ("u8-3", "u8-1", "f32-3", "batch-u8", "u8-3"):
        for picture in (image(kind), image(kind)[..., :29, :31], image(kind).mT):
            assert difference(compose(picture), other(picture)) <= 3
    images = Compose([ours.Resize(20)])
    for kind in ("pil-RGB", "pil-L", "pil-RGBA"):
        assert images(image(kind)).mode == kind.partition("-")[2]


# -- what is random ----------------------------------------------------------------------------------------------------


def test_each_image_of_a_batch_draws_for_itself():
    row = torch.arange(8, dtype=torch.uint8).expand(16, 1, 1, 8)
    found = Compose([ours.RandomHorizontalFlip()], seed=3)(row)
    firsts = found[:, 0, 0, 0].tolist()
    assert set(firsts) == {0, 7}


def test_seeds_and_calls():
    def drawn(seed: int) -> list[int]:
        compose = Compose([ours.RandomCrop((1, 1))], seed=seed)
        return [int(compose(torch.arange(100, dtype=torch.uint8).reshape(1, 10, 10))) for _ in range(10)]

    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)
    assert len(set(drawn(5))) > 5


def _places(transform: Any, height: int, width: int, count: int = 640) -> list[int]:
    """Return the pixels that a transform to one pixel selects in an image of distinct pixels."""
    compose = Compose([transform], seed=1, batch_size=count)
    picture = torch.arange(1, height * width + 1, dtype=torch.uint8).reshape(1, 1, height, width)
    return compose(picture.expand(count, -1, -1, -1)).flatten().tolist()


def test_random_crop_takes_every_position_equally_often():
    counts = np.bincount(_places(ours.RandomCrop(1), 2, 5), minlength=11)[1:]
    assert counts.min() > 35
    assert counts.max() < 100


def test_random_crop_with_margins():
    padded = _places(ours.RandomCrop(1, padding=1, fill=77), 2, 2)
    share = padded.count(77) / len(padded)
    assert 0.65 < share < 0.85  # 12 of 16


@pytest.mark.parametrize("height", [3, 8])
def test_random_crop_where_the_image_is_too_small(height):
    picture = torch.full((32, 3, height, 20), 9, dtype=torch.uint8)
    found = Compose([ours.RandomCrop((7, 24), pad_if_needed=True, fill=1)], seed=2, batch_size=32)(picture)
    assert found.shape == (32, 3, 7, 24)
    rows = (found == 9).any(dim=3).any(dim=1)
    columns = (found == 9).any(dim=2).any(dim=1)
    assert (rows.sum(dim=1) == min(height, 7)).all()
    assert (columns.sum(dim=1) == 20).all()
    firsts = columns.int().argmax(dim=1)
    assert set(firsts.tolist()) == set(range(5))
    with pytest.raises(ValueError, match="extends outside"):
        Compose([ours.RandomCrop((90, 90))])(picture[:4])


def test_random_resized_crop_keeps_its_bounds():
    height, width = 40, 60
    ramp = torch.arange(width, dtype=torch.float32).expand(3, height, width)
    compose = Compose([ours.RandomResizedCrop(32, scale=(0.25, 0.25), ratio=(1.0, 1.0))], seed=1, batch_size=64)
    found = compose(ramp.expand(64, -1, -1, -1))
    assert found.shape == (64, 3, 32, 32)
    spans = found[:, 0, 0, -1] - found[:, 0, 0, 0]
    side = (0.25 * height * width) ** 0.5
    assert ((spans - side).abs() < 2.5).all()


def test_jitter_keeps_its_bounds():
    picture = torch.full((200, 3, 2, 2), 0.4)
    found = Compose([ours.ColorJitter(brightness=0.5)], seed=1, batch_size=200)(picture)
    factors = found[:, 0, 0, 0] / 0.4
    assert factors.min() >= 0.5 - 1e-5
    assert factors.max() <= 1.5 + 1e-5
    assert factors.std() > 0.2
    clipped = Compose([ours.ColorJitter(brightness=(4.0, 4.0))])(picture[:4])
    assert (clipped == 1.0).all()


def test_blur_draws(reference):
    picture = image("f32-3").expand(16, -1, -1, -1)
    spread = Compose([ours.GaussianBlur(9, (0.3, 3.0))], seed=1)(picture).var(dim=(1, 2, 3))
    low, high = (Compose([ours.GaussianBlur(9, sigma)])(picture[:1]).var() for sigma in (3.0, 0.3))
    assert (spread >= low - 1e-6).all()
    assert (spread <= high + 1e-6).all()
    assert len(set(spread.tolist())) == 16
    same = [Compose([ours.GaussianBlur(9, (0.3, 3.0), seed=4)])(picture) for _ in range(2)]
    assert torch.equal(*same)


@pytest.mark.parametrize("kind", ["u8-3", "batch-f32", "pil-RGB"])
def test_on_a_device(emulated_gpu, kind):
    def chain(device: Any) -> list[Any]:
        return [
            ours.Resize(30, device=device),
            ours.CenterCrop((20, 25), device=device),
            ours.RandomHorizontalFlip(1.0, device=device),
            ours.RandomApply([ours.Pad(3, device=device)], 1.0, device=device),
            ours.GaussianBlur(3, 1.0, device=device),
        ]

    assert difference(Compose(chain("gpu"), device_id=0)(image(kind)), Compose(chain("cpu"))(image(kind))) <= 1


def test_fill_by_type(reference):
    """DALI accepts only numbers."""
    pads = [module.Pad(2, {torch.Tensor: 7, "others": 9}) for module in (reference, ours)]
    wanted, found = (module.Compose([pad])(image("u8-3")) for module, pad in zip((reference, ours), pads, strict=True))
    assert torch.equal(found, wanted)


class Rows(torch.utils.data.Dataset[Any]):
    """One image, a row of different values, as often as one likes."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return self.transform(torch.arange(200, dtype=torch.uint8).reshape(1, 1, 200))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_worker_processes(method):
    """Also after calls in the parent: each process draws other numbers."""
    compose = Compose([ours.RandomCrop(1)], num_threads=1)
    compose(torch.zeros(1, 1, 200, dtype=torch.uint8))
    loader = torch.utils.data.DataLoader(Rows(compose), 32, num_workers=2, multiprocessing_context=method, timeout=60)
    first, second = (batch.flatten().tolist() for batch in loader)
    assert len(set(first)) > 16
    assert first != second


def test_copies():
    compose = Compose([ours.RandomCrop(1)], num_threads=1, seed=4)
    picture = torch.arange(200, dtype=torch.uint8).reshape(1, 1, 200)
    wanted = [int(compose(picture)) for _ in range(5)]
    copied = pickle.loads(pickle.dumps(compose))
    assert [int(copied(picture)) for _ in range(5)] == wanted


# -- mistakes ----------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "direct": (RuntimeError, lambda t: t.Resize(3)(image("u8-3"))),
    "direct-pad": (RuntimeError, lambda t: t.Pad(3)(image("u8-3"))),
    "center-crop": (ValueError, lambda t: t.CenterCrop((1, 2, 3))),
    "center-crop-type": (TypeError, lambda t: t.CenterCrop("3")),
    "center-crop-zero": (ValueError, lambda t: t.CenterCrop(0)),
    "resize": (ValueError, lambda t: t.Resize(-3)),
    "resize-three": (ValueError, lambda t: t.Resize((1, 2, 3))),
    "resize-none": (ValueError, lambda t: t.Resize(None)),
    "resize-max": (ValueError, lambda t: t.Resize((3, 4), max_size=9)),
    "resize-max-zero": (ValueError, lambda t: t.Resize(3, max_size=0)),
    "resize-filter": (ValueError, lambda t: t.Resize(3, interpolation=9)),
    "resize-box": (NotImplementedError, lambda t: t.Resize(3, interpolation=t.InterpolationMode.BOX)),
    "crop-size": (ValueError, lambda t: t.RandomCrop((2.5, 3))),
    "crop-padding": (ValueError, lambda t: t.RandomCrop(3, padding=(1, 2, 3))),
    "crop-padding-negative": (ValueError, lambda t: t.RandomCrop(3, padding=-1)),
    "crop-fill": (TypeError, lambda t: t.RandomCrop(3, fill="red")),
    "crop-fill-empty": (ValueError, lambda t: t.RandomCrop(3, fill=[])),
    "crop-mode": (ValueError, lambda t: t.RandomCrop(3, padding=1, padding_mode="mirror")),
    "crop-needed": (TypeError, lambda t: t.RandomCrop(3, pad_if_needed=1)),
    "window-scale": (TypeError, lambda t: t.RandomResizedCrop(3, scale=0.5)),
    "window-scale-order": (ValueError, lambda t: t.RandomResizedCrop(3, scale=(0.5, 0.1))),
    "window-ratio": (ValueError, lambda t: t.RandomResizedCrop(3, ratio=(0.0, 1.0))),
    "window-ratio-type": (TypeError, lambda t: t.RandomResizedCrop(3, ratio=("a", "b"))),
    "pad": (ValueError, lambda t: t.Pad(-1)),
    "pad-mode": (ValueError, lambda t: t.Pad(1, padding_mode="mirror")),
    "pad-count": (TypeError, lambda t: t.Pad((1, 2, 3))),
    "jitter": (ValueError, lambda t: t.ColorJitter(brightness=-1)),
    "jitter-negative": (ValueError, lambda t: t.ColorJitter(brightness=(-1.0, 1.0))),
    "jitter-none": (ValueError, lambda t: t.ColorJitter(contrast=None)),
    "jitter-order": (ValueError, lambda t: t.ColorJitter(saturation=(2.0, 1.0))),
    "hue": (ValueError, lambda t: t.ColorJitter(hue=0.7)),
    "hue-none": (ValueError, lambda t: t.ColorJitter(hue=None)),
    "hue-bounds": (ValueError, lambda t: t.ColorJitter(hue=(-0.7, 0.1))),
    "hue-negative": (ValueError, lambda t: t.ColorJitter(hue=-0.1)),
    "gray": (ValueError, lambda t: t.Grayscale(2)),
    "gray-p": (ValueError, lambda t: t.RandomGrayscale(1.5)),
    "apply-p": (ValueError, lambda t: t.RandomApply([], p="often")),
    "blur": (ValueError, lambda t: t.GaussianBlur(2)),
    "blur-sigma": (ValueError, lambda t: t.GaussianBlur(3, sigma=0.0)),
    "blur-order": (ValueError, lambda t: t.GaussianBlur(3, sigma=(2.0, 1.0))),
    "blur-sigmas": (ValueError, lambda t: t.GaussianBlur(3, sigma=(1.0, 2.0, 3.0))),
    "normalize": (TypeError, lambda t: t.Normalize(0.5, [1.0])),
    "normalize-text": (TypeError, lambda t: t.Normalize([0.5], "1")),
    "normalize-zero": (ValueError, lambda t: t.Normalize([0.5], [0.0])),
    "normalize-inplace": (NotImplementedError, lambda t: t.Normalize([0.5], [1.0], inplace=True)),
    "input": (TypeError, lambda t: t.Compose([t.Resize(3)])(np.zeros((3, 4, 5), np.uint8))),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    kind, call = WRONG[name]
    with pytest.raises(kind):
        call(ours)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore")
def test_mistakes_raise_the_errors_of_dali(theirs, name):
    kind, call = WRONG[name]
    with pytest.raises(kind):
        call(theirs)


def test_probabilities_of_flips():
    """Torchvision checks them; DALI finds out when the pipeline runs."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        ours.RandomHorizontalFlip(1.5)


@pytest.mark.parametrize("item", [lambda image: image, ours.Resize, "Resize"], ids=["function", "class", "string"])
def test_items_that_are_not_transforms(item):
    for make in (Compose, ours.RandomApply):
        with pytest.raises(TypeError, match=r"(?s)must contain transforms.*test_compose\.py.*pytorch\.lower") as caught:
            make([ours.Resize(4), item])
        assert isinstance(caught.value, AttributeError)  # as in DALI


def test_a_compose_stays_with_images_or_tensors():
    compose = Compose([ours.Resize(4)])
    compose(image("pil-RGB"))
    with pytest.raises(TypeError, match="first called with Pillow images"):
        compose(image("u8-3"))


def test_shapes_and_batch_sizes():
    compose = Compose([ours.Resize(4)], batch_size=2)
    with pytest.raises(ValueError, match="must have the shape"):
        compose(torch.zeros(4, 5))
    with pytest.raises(ValueError, match="batch"):
        compose(torch.zeros(3, 1, 4, 5))
    assert compose(torch.zeros(2, 1, 8, 8)).shape == (2, 1, 4, 4)  # an error is no end
    with pytest.raises(ValueError, match="convert"):
        Compose([ours.Resize(4)])(Image.new("P", (8, 8)))


def test_names_equal_dali(theirs):
    assert set(ours.__all__) == set(theirs.__all__)


def test_filters_of_torchvision_itself(reference):
    found = Compose([ours.Resize((20, 33), reference.InterpolationMode.BICUBIC)])(image("u8-3"))
    assert torch.equal(found, Compose([ours.Resize((20, 33), ours.InterpolationMode.BICUBIC)])(image("u8-3")))
