"""Words of the Mersenne Twister compared with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.plugin.pytorch.dropin.kernels.mersenne_twister import STATE_WORDS, following_words


@pytest.mark.parametrize("used", [0, 1, 623, 624, 1500])
@pytest.mark.parametrize("count", [0, 1, 2000])
def test_words_equal_numpy(used, count):
    twister = np.random.MT19937(5)
    twister.random_raw(used)
    state = twister.state["state"]
    key = state["key"].copy()
    found = following_words(state["key"], state["pos"], count)
    np.testing.assert_array_equal(found, twister.random_raw(count) if count else np.zeros(0))
    np.testing.assert_array_equal(state["key"], key)
    assert len(key) == STATE_WORDS
