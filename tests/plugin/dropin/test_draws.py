"""Random numbers compared with torch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.plugin.pytorch.dropin.draws import TorchDraws, predicts_torch, resized_crop_window
from tests.helpers.torchvision_import import import_torchvision

transforms = import_torchvision("torchvision.transforms")


def words(generator: torch.Generator, count: int) -> np.ndarray[Any, Any]:
    return TorchDraws(generator).batch(1, count)._words[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**63), st.lists(st.integers(0, 700), min_size=1, max_size=5))
def test_words_equal_the_next_draws_of_torch(seed, counts):
    ours, theirs = torch.Generator(), torch.Generator()
    ours.manual_seed(seed)
    theirs.manual_seed(seed)
    for count in counts:
        found = words(ours, count)
        fractions = (found & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2**-24)
        np.testing.assert_array_equal(fractions, torch.rand(count, generator=theirs).numpy())
        ends = (3, 250, 2**27)
        drawn = [torch.randint(0, end, (1,), generator=theirs).item() for end in ends]
        assert [int(word) % end for word, end in zip(words(ours, len(ends)), ends, strict=True)] == drawn
        assert torch.equal(ours.get_state(), theirs.get_state())


def test_the_draws_of_this_torch_are_predicted():
    assert predicts_torch()


@pytest.mark.parametrize("probability", [0, 0.1, 0.3, 0.5, 1])
def test_a_batch_draws_the_same_numbers_as_its_samples(probability):
    one, other = TorchDraws(torch.Generator().manual_seed(1)), TorchDraws(torch.Generator().manual_seed(1))
    batch = one.batch(400, 2)
    rows, flips = batch.integer(9), batch.is_below(probability)
    expected = [(other.integer(9), other.is_below(probability)) for _ in range(400)]
    assert list(zip(rows.tolist(), flips.tolist(), strict=True)) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 600),
    st.integers(1, 600),
    st.sampled_from([(0.08, 1.0), (0.5, 0.5), (1.0, 3.0)]),
    st.sampled_from([(0.75, 4 / 3), (1.0, 1.0), (3.0, 9.0), (0.1, 0.2)]),
    st.integers(0, 1000),
)
def test_windows_of_resized_crops(height, width, scale, ratio, seed):
    image = torch.zeros(3, height, width)
    torch.manual_seed(seed)
    expected = transforms.RandomResizedCrop.get_params(image, scale, ratio)
    draws = TorchDraws(torch.Generator().manual_seed(seed))
    assert resized_crop_window(draws, height, width, scale, ratio) == expected
    assert torch.equal(draws.generator.get_state(), torch.get_rng_state())


STEPS = st.sampled_from(["integer", "is_below", "uniform", "permutation", "window", "set_state", "generator"])


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=40), st.integers(2, 4), st.integers(0, 700), st.integers(0, 99))
def test_numbers_computed_ahead_are_those_drawn_one_by_one(steps, samples, used_before, seed):
    def run(draws: TorchDraws) -> list[object]:
        found: list[object] = []
        state = draws.get_state()
        for number, step in enumerate(steps):
            if step == "integer":
                found.append(draws.integer(7 + 40000 * number))
            elif step == "is_below":
                found.append(draws.is_below((0.5, 0.3, 1e-3, 1)[number % 4]))
            elif step == "uniform":
                found.append(draws.uniform(0.08 - number, 1.0))
            elif step == "permutation":
                found.append(draws.permutation(4))
            elif step == "window":
                found.append(resized_crop_window(draws, 90, 40, (0.5, 1.5), (0.75, 4 / 3)))
            elif step == "generator":
                found.append(torch.rand(3, generator=draws.generator).tolist())
            elif number < 20:
                draws.set_state(state)
        return found

    one, other = (torch.Generator().manual_seed(seed) for _ in range(2))
    for generator in (one, other):
        words(generator, used_before)
    draws = TorchDraws(one)
    with draws.precomputed(samples):
        found = run(draws)
    assert found == run(TorchDraws(other))
    assert torch.equal(one.get_state(), other.get_state())
