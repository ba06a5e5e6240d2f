"""The decorator, bins, the choice among operations, and policies."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, types
from dalify.auto_aug import augmentations as a
from dalify.auto_aug.core import Policy, augmentation, select, signed_bin
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConditionError,
    DivergentBranchesError,
    DTypeError,
    IndexingError,
    ShapeError,
)
from tests.auto_aug.running import augmented

ZEROS = [np.zeros((2, 3, 1), np.uint8)] * 16


@augmentation(mag_range=(0, 100))
def shift(data, by, offset=0):
    return fn.cast(data + by + offset, dtype=types.FLOAT)


def values(use, samples=ZEROS, **options):
    """The first value of each sample."""
    return [float(sample.flat[0]) for sample in augmented(use, samples, **options)]


def batch_of(numbers, dtype=np.int32):
    """A graph value with one number per sample."""
    return fn.external_source(source=lambda: np.array(numbers, dtype))


class TestAugmentation:
    def test_magnitudes_are_evenly_spaced(self):
        def use(data):
            return shift(data, magnitude_bin=batch_of(range(16)), num_magnitude_bins=16)

        np.testing.assert_allclose(values(use), np.linspace(0, 100, 16), rtol=1e-6)

    def test_a_magnitude_for_each_bin(self):
        own = shift.augmentation(mag_range=np.array([3.0, 1.0, 7.0]))
        assert set(values(lambda x: own(x, magnitude_bin=2, num_magnitude_bins=3))) == {7}
        with pytest.raises(ArgumentValueError, match="3 magnitudes, but num_magnitude_bins is 4"):
            augmented(lambda x: own(x, magnitude_bin=2, num_magnitude_bins=4), ZEROS)
        two_axes = shift.augmentation(mag_range=np.ones((3, 2)))
        with pytest.raises(ArgumentValueError, match=r"\(3, 2\)"):
            augmented(lambda x: two_axes(x, magnitude_bin=2, num_magnitude_bins=3), ZEROS)

    def test_randomly_negated(self):
        own = shift.augmentation(randomly_negate=True)
        batch = [np.zeros((1, 1, 1), np.uint8)] * 400
        found = values(lambda x: own(x, magnitude_bin=1, num_magnitude_bins=2), batch)
        assert set(found) == {-100, 100}
        assert 140 < found.count(100) < 260

    def test_a_given_sign(self):
        own = shift.augmentation(randomly_negate=True)

        def use(data):
            level = signed_bin(batch_of([1, 2] * 8), random_sign=batch_of([0, 0, 1, 1] * 4))
            return own(data, magnitude_bin=level, num_magnitude_bins=3)

        assert values(use) == [50, 100, -50, -100] * 4

    def test_signs_do_not_change_augmentations_without_them(self):
        def use(data):
            return shift(data, magnitude_bin=signed_bin(1), num_magnitude_bins=2)

        assert set(values(use)) == {100}

    def test_parameters_are_made_once_for_each_bin(self):
        calls = []

        def note(magnitude):
            calls.append(magnitude)
            return [magnitude, -magnitude]

        @augmentation(mag_range=(1, 3), mag_to_param=note)
        def second(data, pair):
            return fn.cast(data + pair[1], dtype=types.FLOAT)

        assert set(values(lambda x: second(x, magnitude_bin=0, num_magnitude_bins=3))) == {-1}
        assert calls == [1, 2, 3]

    def test_integers_stay_integers(self):
        @augmentation(mag_range=(0, 4), mag_to_param=lambda m: np.array(m, np.uint8))
        def masked(data, mask):
            assert mask.dtype == types.UINT8
            return data | mask

        assert set(values(lambda x: masked(x, magnitude_bin=1, num_magnitude_bins=2))) == {4}

    def test_further_arguments_by_name(self):
        call = {"magnitude_bin": 0, "num_magnitude_bins": 2}
        assert set(values(lambda x: shift(x, offset=5, unknown=1, **call))) == {5}

        @augmentation
        def all_of_them(data, _, **rest):
            return data + rest["more"]

        assert set(values(lambda x: all_of_them(x, more=np.uint8(4)))) == {4}

        @augmentation
        def needy(data, _, *, first, second):
            return data + first + second

        with pytest.raises(ArgumentTypeError, match="requires the arguments first, second"):
            augmented(needy, ZEROS)

    def test_conditions_work_inside(self):
        @augmentation(mag_range=(0, 1))
        def bright_if_high(data, level):
            if level > 0.5:
                data = data + np.uint8(200)
            return data

        def use(data):
            return bright_if_high(data, magnitude_bin=batch_of(range(16)), num_magnitude_bins=16)

        assert values(use) == [0] * 8 + [200] * 8

    def test_settings_can_be_changed(self):
        class Special(type(shift)):
            pass

        changed = shift.augmentation(mag_range=(0, 1), name="other", augmentation_cls=Special)
        assert isinstance(changed, Special)
        assert (changed.name, changed.mag_range, changed.op) == ("other", (0, 1), shift.op)
        assert (shift.name, shift.mag_range, shift.param_device) == ("shift", (0, 100), "cpu")
        assert repr(changed).endswith("mag_range=(0, 1), name='other')")

    def test_on_the_gpu(self, gpu):
        own = shift.augmentation(param_device="auto")
        assert set(values(lambda x: own(x, magnitude_bin=1, num_magnitude_bins=2), device="gpu")) == {100}

    @pytest.mark.parametrize(
        ("level", "count", "error", "text"),
        [
            (11, 11, IndexingError, "between 0 and 10; got 11"),  # IndexError is what DALI raises
            (-1, 11, IndexingError, "between 0 and 10"),
            (1.5, 11, ArgumentTypeError, "1.5 of type float"),
            (True, 11, ArgumentTypeError, "True"),
            (0, 0, ArgumentValueError, "num_magnitude_bins must be at least 1; got 0"),
            (0, 2.0, ArgumentTypeError, "num_magnitude_bins must be a positive integer; got 2.0"),
        ],
    )
    def test_wrong_bins(self, level, count, error, text):
        with pytest.raises(error, match=text):
            augmented(lambda x: shift(x, magnitude_bin=level, num_magnitude_bins=count), ZEROS)

    def test_a_bin_outside_the_range_at_run_time_names_the_sample(self):
        def use(data):
            return shift(data, magnitude_bin=batch_of([0] * 5 + [9] * 11), num_magnitude_bins=9)

        with pytest.raises(IndexError, match=r"index 9 is out of range.*extent 9"):
            augmented(use, ZEROS)

    def test_bins_that_are_not_integers(self):
        def use(data):
            return shift(data, magnitude_bin=fn.random.uniform(range=[0, 1]), num_magnitude_bins=2)

        with pytest.raises(ArgumentTypeError, match="must have integer elements; the graph value has float32 elements"):
            augmented(use, ZEROS)

    @pytest.mark.parametrize(("wrong", "text"), [((1, 2, 3), r"\(1, 2, 3\)"), ("ab", "'ab'"), (5, "5")])
    def test_wrong_ranges(self, wrong, text):
        own = shift.augmentation(mag_range=wrong)
        with pytest.raises(ArgumentValueError, match=f"mag_range must be two numbers.*{text}"):
            augmented(lambda x: own(x, magnitude_bin=0, num_magnitude_bins=2), ZEROS)

    def test_parameters_of_several_shapes(self):
        own = shift.augmentation(mag_to_param=lambda m: np.zeros(int(m) // 100 + 1))
        with pytest.raises(ArgumentValueError, match="the same shape and type for all magnitudes"):
            augmented(lambda x: own(x, magnitude_bin=0, num_magnitude_bins=3), ZEROS)
        nothing = shift.augmentation(mag_to_param=lambda m: None)
        with pytest.raises(ArgumentValueError, match="must return numbers"):
            augmented(lambda x: nothing(x, magnitude_bin=0, num_magnitude_bins=3), ZEROS)

    def test_what_cannot_be_decorated(self):
        with pytest.raises(ArgumentTypeError, match=r"at least two positional arguments.*takes 1"):
            augmentation(lambda data: data)
        with pytest.raises(ArgumentTypeError, match="must be a function; got 3"):
            augmentation(3)
        with pytest.raises(ArgumentTypeError, match="shift is already an augmentation"):
            augmentation(shift)
        with pytest.raises(ArgumentValueError, match="param_device must be one of cpu, gpu, auto; got 'tpu'"):
            augmentation(lambda data, _: data, param_device="tpu")

    def test_augmentations_must_return_graph_values(self):
        nothing = augmentation(lambda data, _: None, name="nothing")
        with pytest.raises(ArgumentTypeError, match="nothing returned NoneType"):
            augmented(nothing, ZEROS)


class TestSelect:
    def test_each_sample_gets_its_operation(self):
        numbers = [0, 2, 1, 1, 2, 0, 2, 2, 0, 0, 1, 0, 2, 1, 1, 0]
        calls = [lambda x: x, lambda x: x + np.uint8(10), lambda x: fn.flip(x) + np.uint8(20)]
        found = values(lambda x: select(calls, batch_of(numbers), x))
        assert found == [10 * number for number in numbers]

    def test_samples_of_many_shapes(self):
        samples = [np.full((k + 1, 2, 1), k, np.uint8) for k in range(6)]
        calls = [lambda x: x + np.uint8(100), lambda x: x]
        result = augmented(lambda x: select(calls, batch_of([0, 1] * 3), x), samples)
        assert [sample.shape[0] for sample in result] == [1, 2, 3, 4, 5, 6]
        assert [sample.flat[0] for sample in result] == [100, 1, 102, 3, 104, 5]

    def test_inside_and_outside_of_a_condition(self):
        def use(data):
            which = batch_of([0, 1, 2, 1] * 4)
            if which:  # true for 1 and 2: not to be taken for the choice of number 1
                data = select([lambda x: x, lambda x: x + np.uint8(1), lambda x: x + np.uint8(2)], which, data)
            else:
                data = data + np.uint8(50)
            return data

        assert values(use) == [50, 1, 2, 1] * 4

    def test_choices_within_choices(self):
        def inner(data):
            return select([lambda x: x + np.uint8(1), lambda x: x + np.uint8(2)], batch_of([0, 1, 1, 0] * 4), data)

        found = values(lambda x: select([inner, lambda x: x], batch_of([0, 0, 1, 0] * 4), x))
        assert found == [1, 2, 0, 1] * 4

    def test_all_samples_in_one_branch(self):
        found = values(lambda x: select([lambda x: x, lambda x: x + np.uint8(3)], batch_of([1] * 16), x))
        assert found == [3] * 16

    def test_graph_values_among_the_arguments_are_split(self):
        def add(data, number):
            return data + number

        def use(data):
            return select([add, lambda x, number: x], batch_of([0, 1] * 8), data, number=batch_of(range(16), np.uint8))

        assert values(use) == [number if number % 2 == 0 else 0 for number in range(16)]

    def test_on_the_gpu(self, gpu):
        calls = [lambda x: x, lambda x: x + np.uint8(10)]
        found = values(lambda x: select(calls, batch_of([0, 1] * 8), x), device="gpu")
        assert found == [0, 10] * 8

    def test_branches_on_two_devices(self, gpu):
        calls = [lambda x: x, lambda x: (x + np.uint8(10)).gpu()]
        assert values(lambda x: select(calls, batch_of([0, 1] * 8), x)) == [0, 10] * 8

    def test_an_index_outside_the_range_names_the_sample(self):
        def use(data):
            return select([lambda x: x, lambda x: x], batch_of([0, 1, 0, 2] + [0] * 12), data)

        with pytest.raises(ArgumentValueError, match=r"one of 2 branches is 2; it must be between 0 and 1") as caught:
            augmented(use, ZEROS)
        assert "sample 3" in str(caught.value)

    def test_mistakes(self, gpu):
        def choosing(index, *calls):
            return lambda x: select(calls or [lambda x: x], index() if callable(index) else index, x)

        with pytest.raises(ArgumentTypeError, match="must be a graph value; got 0"):
            augmented(choosing(0), ZEROS)
        with pytest.raises(ArgumentValueError, match="at least one operation"):
            augmented(lambda x: select([], batch_of([0] * 16), x), ZEROS)
        with pytest.raises(ConditionError, match="is on the GPU"):
            augmented(choosing(lambda: batch_of([0] * 16).gpu()), ZEROS)
        with pytest.raises(DTypeError, match="must be an integer"):
            augmented(choosing(lambda: fn.random.uniform(range=[0, 1])), ZEROS)
        with pytest.raises(ShapeError, match="scalar integer"):
            augmented(choosing(lambda: fn.random.uniform(range=[0, 1], shape=(2,), dtype=types.INT32)), ZEROS)
        with pytest.raises(DivergentBranchesError, match="a different element type"):
            augmented(
                choosing(lambda: batch_of([0, 1] * 8), lambda x: x, lambda x: fn.cast(x, dtype=types.FLOAT)), ZEROS
            )


class TestPolicy:
    def test_augmentations_by_name(self):
        policy = Policy("mine", 11, [[(a.rotate, 0.5, 3), (a.invert, 0.2, None)], [(a.invert, 1, None)]])
        assert list(policy.augmentations) == ["invert", "rotate"]
        assert policy.sub_policies == (((a.rotate, 0.5, 3), (a.invert, 0.2, None)), ((a.invert, 1, None),))
        assert "('rotate', 0.5, 3)" in repr(policy)

    def test_equal_names_are_distinguished(self):
        weak = a.rotate.augmentation(mag_range=(0, 3))
        policy = Policy("mine", 11, [[(a.rotate, 0.5, 3), (weak, 0.5, 3)]])
        assert {name: item.mag_range for name, item in policy.augmentations.items()} == {
            "0__rotate": (0, 30),
            "1__rotate": (0, 3),
        }

    @pytest.mark.parametrize(
        ("steps", "error", "text"),
        [
            ([(a.rotate, 1.5, 3)], ArgumentValueError, "probability of rotate must be between 0 and 1; got 1.5"),
            ([(a.rotate, "a", 3)], ArgumentTypeError, "probability of rotate must be a number; got 'a'"),
            ([(a.rotate, 0.5, 11)], IndexingError, "bin of rotate must be between 0 and 10"),
            ([(a.rotate, 0.5, 3.0)], ArgumentTypeError, "bin of rotate must be an integer"),
            (
                [(a.rotate, 0.5, None)],
                ArgumentValueError,
                "rotate has magnitudes, but the policy 'mine' specifies no magnitude bin for it",
            ),
            ([(a.rotate, 0.5)], ArgumentTypeError, r"\(augmentation, probability, magnitude bin\)"),
            ((a.rotate, 0.5, 3), ArgumentTypeError, "a list of sub-policies"),
            ([(fn.rotate, 0.5, 3)], ArgumentTypeError, "must start with an augmentation"),
        ],
    )
    def test_wrong_steps(self, steps, error, text):
        with pytest.raises(error, match=text):
            Policy("mine", 11, [steps])

    def test_steps_without_effect(self):
        """As in DALI, warnings."""
        with pytest.warns(UserWarning, match="the probability of rotate in the policy 'mine' is 0") as caught:
            Policy("mine", 11, [[(a.rotate, 0, 3)]])
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="invert has no magnitudes: its bin 3 in the policy 'mine' is ignored"):
            Policy("mine", 11, [[(a.invert, 0.5, 3)]])

    def test_wrong_bin_counts(self):
        with pytest.raises(ArgumentValueError, match="at least 1; got 0"):
            Policy("mine", 0, [])
        with pytest.raises(ArgumentTypeError, match="positive integer; got 'b'"):
            Policy("mine", "b", [])


def test_signed_bin_mistakes():
    def use(data):
        return shift(data, magnitude_bin=signed_bin(1, batch_of([0] * 16), seed=3), num_magnitude_bins=2)

    with pytest.raises(ArgumentValueError, match="cannot be combined with random_sign"):
        augmented(use, ZEROS)
    with pytest.raises(ArgumentTypeError, match="'a' of type str"):
        signed_bin("a")
