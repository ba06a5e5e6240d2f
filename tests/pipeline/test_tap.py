"""Intermediate values of a pipeline: ``pipe.tap(name)``."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentTypeError, GraphError, PipelineStateError

OPTIONS = {"batch_size": 3, "num_threads": 2, "seed": 4}


@pipeline_def(**OPTIONS)
def images(crop=(4, 4)):
    data = fn.external_source(source=lambda index: np.full((3, 8, 8, 3), index, np.uint8), layout="HWC", name="source")
    resized = fn.resize(data, size=[6, 6], name="resized")
    noisy = fn.cast(resized, dtype=np.float32) + fn.random.uniform(name="noise", range=(0.0, 1.0))
    fn.flip(data, name="pruned")
    if fn.random.coin_flip() == 1:
        noisy = fn.flip(noisy, name="inside")
    return fn.crop(noisy, crop=crop, name="last")


def test_values_of_the_last_batch():
    """Also with prefetched batches; the outputs and their random numbers do not change."""
    plain, tapped = images(), images(taps=["resized", "noise", "last", "source"])
    for index in range(4):
        (expected,), (output,) = plain.run(), tapped.run()
        np.testing.assert_array_equal(output.as_array(), expected.as_array())
        resized = tapped.tap("resized")
        assert resized.layout() == "HWC"
        assert resized.shape() == [(6, 6, 3)] * 3
        assert (resized.as_array() == index).all()
        assert (tapped.tap("source").as_array() == index).all()
        noise = tapped.tap("noise").as_array()
        np.testing.assert_allclose(output.as_array(), index + np.broadcast_to(noise[:, None, None, None], (3, 4, 4, 3)))
        last = tapped.tap("last").as_array()
        np.testing.assert_array_equal(last, output.as_array())
        assert not np.shares_memory(last, output.as_array())
    assert tapped.num_outputs == 1
    plain.close()
    tapped.close()


def test_several_outputs(photo_folder):
    @pipeline_def(**OPTIONS)
    def pipe():
        _, labels = fn.readers.file(file_root=str(photo_folder), name="photos")
        return labels

    built = pipe(taps="photos")
    (labels,) = built.run()
    encoded, again = built.tap("photos")
    assert len(encoded) == 3
    np.testing.assert_array_equal(again.as_array(), labels.as_array())
    built.close()


def test_what_cannot_be_tapped():
    for name, message in (("resize", "resized"), ("pruned", "no output needs"), ("inside", "condition")):
        with pytest.raises(GraphError, match=message):
            images(taps=[name]).build()
    with pytest.raises(ArgumentTypeError, match="taps"):
        images(taps=[3])
    pipe = images(taps=["resized"])
    with pytest.raises(PipelineStateError, match="no batch"):
        pipe.tap("resized")
    with pytest.raises(PipelineStateError, match=r"taps=\['noise'\]"):
        pipe.tap("noise")
    pipe.close()


def test_the_state_equals_that_without_taps(photo_folder):
    """A run without taps can be resumed with taps, to inspect a failing batch."""

    @pipeline_def(**OPTIONS)
    def pipe():
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        return labels, fn.random.uniform(name="draw", range=(0.0, 1.0)), encoded

    plain = pipe()
    plain.run()
    state = plain.state_dict()
    tapped = pipe(taps=["draw"])
    tapped.load_state_dict(state)
    for one, other in zip(plain.run()[:2], tapped.run()[:2], strict=True):
        np.testing.assert_array_equal(one.as_array(), other.as_array())
    plain.close()
    tapped.close()
