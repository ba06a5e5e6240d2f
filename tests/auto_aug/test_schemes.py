"""AutoAugment, RandAugment and TrivialAugment: tables and frequencies of choices, compared with the real DALI."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.auto_aug import augmentations as a
from dalify.auto_aug import auto_augment, rand_augment, trivial_augment
from dalify.auto_aug.core import Policy, augmentation
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from tests.auto_aug.running import augmented, picture
from tests.helpers.messages import own_text

IMAGES = [picture(30, 40), picture(24, 50)] * 4
VIDEO = [np.stack([picture(20, 31)] * 3)] * 6
POLICIES = ["get_image_net_policy", "get_svhn_policy", "get_reduced_cifar10_policy"]
SUITES = [
    (rand_augment, "get_rand_augment_suite"),
    (rand_augment, "get_rand_augment_non_monotonic_suite"),
    (trivial_augment, "get_trivial_augment_wide_suite"),
]
LIMITS = [
    {},
    {"max_translate_abs": 20},
    {"max_translate_abs": (10, 30)},
    {"use_shape": True},
    {"use_shape": True, "max_translate_rel": (0.2, 0.3)},
]


def marker(number):
    """An augmentation that adds a number and its bin times 100, in floating point."""

    @augmentation(mag_range=(0, 100), name=f"mark{number}")
    def mark(data, level):
        return data + level * 10 + number

    return mark


def described(augmentation):
    """What two libraries can be compared by."""
    limits = augmentation.mag_range
    return augmentation.name, limits and tuple(map(float, limits)), augmentation.randomly_negate


def marks(use, count=2000):
    """The marked value of each sample."""
    zeros = [np.zeros((1,), np.float32)] * count
    return np.array([float(sample[0]) for sample in augmented(use, zeros, layout="C", seed=11)])


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("name", [*POLICIES, "get_reduced_image_net_policy"])
def test_policies_compared_with_dali(oracle, name, limits):
    if name == "get_reduced_image_net_policy":
        limits = {}
    theirs = getattr(importlib.import_module("nvidia.dali.auto_aug.auto_augment"), name)(**limits)
    ours = getattr(auto_augment, name)(**limits)
    assert (ours.name, ours.num_magnitude_bins) == (theirs.name, theirs.num_magnitude_bins)
    for one, other in zip(ours.sub_policies, theirs.sub_policies, strict=True):
        assert [(described(item), *rest) for item, *rest in one] == [(described(item), *rest) for item, *rest in other]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize(("module", "name"), SUITES, ids=lambda item: item if isinstance(item, str) else "")
def test_suites_compared_with_dali(oracle, module, name, limits):
    package = importlib.import_module(module.__name__.replace("dalify", "nvidia.dali"))
    theirs = getattr(package, name)(**limits)
    assert list(map(described, getattr(module, name)(**limits))) == list(map(described, theirs))


@pytest.mark.parametrize("policy", ["image_net", "reduced_image_net", "svhn", "reduced_cifar10"])
def test_auto_augment(policy):
    for samples, layout in ((IMAGES, "HWC"), (VIDEO, "FHWC")):
        result = augmented(lambda x: auto_augment.auto_augment(x, policy, seed=3), samples, layout)
        assert [(x.shape, x.dtype) for x in result] == [(x.shape, x.dtype) for x in samples]
        assert any((x != y).any() for x, y in zip(result, samples, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shape": "node"},
        {"shape": (30, 40), "max_translate_rel": 0.2},
        {"max_translate_abs": (3, 9), "fill_value": None},
        {"interp_type": types.INTERP_NN, "seed": 5},
    ],
    ids=str,
)
def test_options(options):
    def use(scheme, data, **more):
        given = options | ({"shape": data.shape()} if options.get("shape") == "node" else {})
        return scheme(data, **given, **more)

    for scheme, more in (
        (auto_augment.auto_augment_image_net, {}),
        (rand_augment.rand_augment, {"n": 2, "m": 12}),
        (rand_augment.rand_augment, {"n": 1, "m": 30, "monotonic_mag": False}),
        (trivial_augment.trivial_augment_wide, {}),
    ):
        result = augmented(lambda x, scheme=scheme, more=more: use(scheme, x, **more), IMAGES, seed=1)
        assert [x.shape for x in result] == [x.shape for x in IMAGES]


def test_on_the_gpu(gpu):
    def use(data):
        return trivial_augment.trivial_augment_wide(rand_augment.rand_augment(data, n=1, m=5))

    for one, other in zip(augmented(use, IMAGES, device="gpu", seed=4), augmented(use, IMAGES, seed=4), strict=True):
        assert np.mean(np.abs(one.astype(int) - other.astype(int)) > 3) < 0.01


def test_frames_get_the_same_augmentation():
    for video in augmented(lambda x: rand_augment.rand_augment(x, n=2, m=20), VIDEO, "FHWC", seed=2):
        for frame in video[1:]:
            np.testing.assert_array_equal(frame, video[0])


def test_trivial_augment_draws_operations_and_bins_evenly():
    suite = [marker(number) for number in range(4)]
    found = marks(lambda x: trivial_augment.apply_trivial_augment(suite, x, num_magnitude_bins=5))
    kinds = Counter((int(value) % 10, int(value) // 250) for value in found)
    assert len(kinds) == 20
    assert min(kinds.values()) > 60  # 100 expected, 4 standard deviations are 39
    assert max(kinds.values()) < 140


def test_a_seed_selects_operation_and_bin_independently():
    suite = [marker(number) for number in range(4)]
    found = marks(lambda x: trivial_augment.apply_trivial_augment(suite, x, num_magnitude_bins=5, seed=9))
    assert len(set(found.tolist())) == 20


def test_rand_augment_draws_each_step_independently():
    suite = [marker(number) for number in range(3)]
    found = marks(lambda x: rand_augment.apply_rand_augment(suite, x, n=2, m=2, num_magnitude_bins=5))
    assert set(found.astype(int) // 100) == {10}  # twice 500
    sums = Counter(int(value) % 10 for value in found)
    expected = {0: 1 / 9, 1: 2 / 9, 2: 3 / 9, 3: 2 / 9, 4: 1 / 9}
    for number, share in expected.items():
        assert abs(sums[number] / len(found) - share) < 0.05


def test_auto_augment_follows_the_policy():
    first, second, third = (marker(number) for number in (1, 2, 4))
    policy = Policy("mine", 11, [[(first, 0.25, 0), (second, 1.0, 10)], [(third, 0.5, 3)], []])
    found = Counter(marks(lambda x: auto_augment.apply_auto_augment(policy, x), 3000).tolist())
    expected = {1003.0: 0.25 / 3, 1002.0: 0.75 / 3, 304.0: 0.5 / 3, 0.0: 0.5 / 3 + 1 / 3}
    assert set(found) == set(expected)
    for value, share in expected.items():
        assert abs(found[value] / 3000 - share) < 0.04


def test_policies_without_steps_or_with_one():
    zeros = [np.zeros((1,), np.float32)] * 4
    nothing = Policy("nothing", 11, [[]])
    assert not any(x[0] for x in augmented(lambda x: auto_augment.apply_auto_augment(nothing, x), zeros, "C"))
    always = Policy("always", 11, [[(marker(1), 1.0, 0)]])
    assert all(x[0] == 1 for x in augmented(lambda x: auto_augment.apply_auto_augment(always, x), zeros, "C"))


def test_seeds():
    def use(data, seed):
        return auto_augment.auto_augment(data, seed=seed)

    one, again = (augmented(lambda x: use(x, 5), IMAGES) for _ in range(2))
    other = augmented(lambda x: use(x, 6), IMAGES)
    assert all((x == y).all() for x, y in zip(one, again, strict=True))
    assert any((x != y).any() for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("number", [np.int8(99), np.int32(99_999), np.int64(1 << 60)])
def test_seeds_of_numpy_types_do_not_overflow(number):
    def use(data, seed):
        return auto_augment.auto_augment(data, seed=seed)

    expected = augmented(lambda x: use(x, int(number)), IMAGES)
    for one, other in zip(augmented(lambda x: use(x, number), IMAGES), expected, strict=True):
        assert np.array_equal(one, other)


def test_samples_do_not_depend_on_their_batch():
    def use(data):
        return trivial_augment.trivial_augment_wide(data)

    whole, part = augmented(use, IMAGES, seed=8), augmented(use, IMAGES[:3], seed=8)
    for one, other in zip(whole, part, strict=False):
        np.testing.assert_array_equal(one, other)


def test_without_conditionals():
    result = augmented(lambda x: rand_augment.rand_augment(x, n=1, m=9), IMAGES, enable_conditionals=False)
    assert len(result) == len(IMAGES)


def test_excluded():
    names = [item.name for item in trivial_augment.get_trivial_augment_wide_suite()]
    left = augmented(lambda x: trivial_augment.trivial_augment_wide(x, excluded=names[:-1]), IMAGES)
    for one, other in zip(left, IMAGES, strict=True):
        np.testing.assert_array_equal(one, other)  # only the identity is left, which has no further arguments
    augmented(lambda x: rand_augment.rand_augment(x, n=1, m=3, excluded=["rotate", "equalize"]), IMAGES)


def test_nothing_to_do():
    none_listed = partial(rand_augment.apply_rand_augment, [], n=0, m=3)
    for function in (partial(rand_augment.rand_augment, n=0, m=3), none_listed):
        with pytest.warns(UserWarning, match="n=0 returns the data unchanged") as caught:
            found = augmented(lambda x, f=function: f(x), IMAGES)
        assert caught[0].filename.endswith(".py")
        assert "dalify/" not in caught[0].filename
        for one, other in zip(found, IMAGES, strict=True):
            np.testing.assert_array_equal(one, other)


def test_saved_and_loaded():
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=2)
    def pipeline():
        data = fn.random.uniform(range=[0, 255], shape=[6, 7, 3], dtype=types.UINT8)
        return auto_augment.auto_augment(fn.reinterpret(data, layout="HWC"))

    first = pipeline()
    again = type(first).deserialize(first.serialize())
    for one, other in zip(first.run()[0].as_array(), again.run()[0].as_array(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda x: auto_augment.auto_augment(x, "imagenet"), ArgumentValueError, "image_net, reduced_image_net, svhn"),
        (lambda x: auto_augment.auto_augment(x, 3), ArgumentValueError, "policy_name must be one of"),
        (lambda x: auto_augment.auto_augment(x, max_translate_rel=0.5), ArgumentValueError, "without the shape"),
        (
            lambda x: auto_augment.auto_augment(x, shape=(30, 40), max_translate_abs=5),
            ArgumentValueError,
            "max_translate_abs has no effect with the shape",
        ),
        (
            lambda x: auto_augment.auto_augment(x, "reduced_image_net", max_translate_abs=5),
            ArgumentValueError,
            "no translations and does not accept max_translate_abs",
        ),
        (lambda x: auto_augment.auto_augment(x, shape=7), ArgumentTypeError, r"\(height, width\); got 7"),
        (
            lambda x: auto_augment.auto_augment(x, max_translate_abs="a"),
            ArgumentTypeError,
            "max_translate_abs must be a number",
        ),
        (
            lambda x: auto_augment.auto_augment(x, max_translate_abs=(1, 2, 3)),
            ArgumentTypeError,
            r"a number or \(height, width\)",
        ),
        (lambda x: auto_augment.auto_augment(x, max_translate_abs=-1), ArgumentValueError, "not negative; got -1"),
        (lambda x: auto_augment.apply_auto_augment("svhn", x), ArgumentTypeError, "policy must be a Policy"),
        (lambda x: auto_augment.apply_auto_augment(Policy("p", 3, []), x), ArgumentValueError, "p has no sub-policies"),
        (
            lambda x: auto_augment.apply_auto_augment(Policy("p", 3, [[(a.invert, 1, None)]]), x, fill=3),
            ArgumentTypeError,
            "'fill', which no augmentation accepts",
        ),
        (lambda x: rand_augment.rand_augment(x, -1, 3), ArgumentValueError, "at least 0; got -1"),
        (lambda x: rand_augment.rand_augment(x, 2.0, 3), ArgumentTypeError, "must be an integer; got 2.0"),
        (lambda x: rand_augment.rand_augment(x, 2, 31), ArgumentValueError, "m must be between 0 and 30"),
        (lambda x: rand_augment.rand_augment(x, 2, -1), ArgumentValueError, "m must be between 0 and 30"),
        (lambda x: rand_augment.rand_augment(x, 2, 3.0), ArgumentTypeError, "m must be an integer"),
        (
            lambda x: rand_augment.rand_augment(x, 2, 3, excluded=["foo"]),
            ArgumentValueError,
            "'foo', which RandAugment does not have; it has translate_x",
        ),
        (lambda x: rand_augment.rand_augment(x, 2, 3, excluded="rotate"), ArgumentTypeError, "a list of names"),
        (
            lambda x: rand_augment.rand_augment(x, 2, 3, excluded="rotate"),
            ArgumentTypeError,
            r"Write excluded=\['rotate'\]",
        ),
        (lambda x: auto_augment.auto_augment(np.zeros((4, 4, 3))), ArgumentTypeError, "graph values; got ndarray"),
        (lambda x: trivial_augment.trivial_augment_wide(x, 0), ArgumentValueError, "at least 1; got 0"),
        (
            lambda x: trivial_augment.trivial_augment_wide(
                x, excluded=[item.name for item in trivial_augment.get_trivial_augment_wide_suite()]
            ),
            ArgumentValueError,
            "must not contain all augmentations",
        ),
        (
            lambda x: trivial_augment.apply_trivial_augment([], x),
            ArgumentValueError,
            "the list of augmentations must not be empty",
        ),
        (
            lambda x: trivial_augment.apply_trivial_augment([fn.flip], x),
            ArgumentTypeError,
            "contains flip, which is not an augmentation",
        ),
        (
            lambda x: trivial_augment.apply_trivial_augment([a.rotate], x, foo=3),
            ArgumentTypeError,
            "TrivialAugment got the argument 'foo'",
        ),
        *(
            (
                lambda images, scheme=scheme, seed=seed: scheme(images, seed),
                ArgumentTypeError,
                "seed must be an integer; got",
            )
            for scheme in (
                lambda images, seed: auto_augment.auto_augment(images, seed=seed),
                lambda images, seed: rand_augment.rand_augment(images, n=1, m=3, seed=seed),
                lambda images, seed: trivial_augment.trivial_augment_wide(images, seed=seed),
            )
            for seed in ("a", float("nan"), [1])
        ),
    ],
)
def test_mistakes(use, error, text):
    with pytest.raises(error) as caught:
        augmented(use, IMAGES)
    assert re.search(text, own_text(caught.value))
