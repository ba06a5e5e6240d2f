"""fn.per_frame compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError
from tests.helpers.one_operator import run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


def test_layouts():
    import dalify

    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        data = dalify.fn.external_source(source=lambda: [np.zeros((3, 2), np.float32)])
        named = dalify.fn.external_source(source=lambda: [np.zeros((3, 2), np.float32)], layout="AB")
        return dalify.fn.per_frame(data), dalify.fn.per_frame(named, replace=True)

    pipe = graph()
    pipe.build()
    assert [batch.layout() for batch in pipe.run()] == ["F*", "FB"]


def test_argument_per_frame(device):
    import dalify

    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        video = dalify.fn.external_source(source=lambda: SEQUENCES, layout="FHWC")
        return dalify.fn.brightness(video, brightness=dalify.fn.per_frame(np.float32([0, 1, 0.5])))

    pipe = graph()
    pipe.build()
    result = np.array(pipe.run()[0].as_cpu()[0])
    assert (result[0] == 0).all()
    np.testing.assert_array_equal(result[1], SEQUENCES[0][1])


def test_mistakes():
    with pytest.raises(LayoutError, match="does not start with F"):
        run_dalify("per_frame", IMAGES, layouts="HWC")
    with pytest.raises(LayoutError, match="must have an axis of frames"):
        run_dalify("per_frame", [np.float32(1)])
