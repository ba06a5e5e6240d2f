"""Arguments of fn.transforms with one entry per frame, compared with the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn
from dalify.base.errors import ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
FRAMES = 4


def frames(*shape: int, low: float = 0.5, high: float = 2.0) -> Each:
    """Return an argument for three samples of four frames."""
    return Each(RANDOM.uniform(low, high, (3, FRAMES, *shape)).astype(np.float32), "F" + "*" * len(shape))


def ragged(*shape: int) -> Each:
    return Each(
        [RANDOM.uniform(0.5, 2, (count, *shape)).astype(np.float32) for count in (3, 1, 5)], "F" + "*" * len(shape)
    )


MATRICES = RANDOM.normal(size=(3, FRAMES, 2, 3)).astype(np.float32)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("translation", {"offset": frames(2)}),
    ("translation", {"offset": frames(3)}),
    ("translation", {"offset": ragged(2)}),
    ("rotation", {"angle": frames(low=0, high=360)}),
    ("rotation", {"angle": frames(), "center": frames(2)}),
    ("rotation", {"angle": 30.0, "center": frames(2)}),
    ("rotation", {"angle": frames(), "axis": frames(3)}),
    ("rotation", {"angle": frames(), "center": Each(np.float32([[1, 2], [3, 4], [5, 6]]))}),
    ("rotation", {"angle": ragged()}),
    ("scale", {"scale": frames(2)}),
    ("scale", {"scale": frames(1), "ndim": 2}),
    ("scale", {"scale": frames(), "ndim": 3}),
    ("scale", {"scale": frames(2), "center": [1.0, 2.0]}),
    ("shear", {"shear": frames(2)}),
    ("shear", {"angles": frames(2, low=0, high=60), "center": frames(2)}),
    ("crop", {"from_start": frames(2), "from_end": frames(2, low=3, high=4), "to_start": frames(2)}),
    ("crop", {"from_end": frames(2), "absolute": True}),
]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=str)
def test_alone(name, arguments, device):
    assert_equals_dali(f"transforms.{name}", device=device, tolerance=1e-5, **arguments)


@pytest.mark.parametrize("reverse_order", [False, True])
@pytest.mark.parametrize("layout", ["F**", "**"])
def test_after_another(reverse_order, layout, device):
    given = list(MATRICES if layout == "F**" else MATRICES[:, 0])
    for name, arguments in (
        ("translation", {"offset": frames(2)}),
        ("rotation", {"angle": frames(), "center": [1.0, 2.0]}),
        ("scale", {"scale": frames(2)}),
        ("shear", {"shear": frames(2)}),
        ("crop", {"from_end": frames(2)}),
    ):
        assert_equals_dali(
            f"transforms.{name}", given, layouts=layout, device=device, tolerance=1e-4, reverse_order=reverse_order,
            **arguments,
        )  # fmt: skip


@pytest.mark.parametrize("is_declared", [False, True])
def test_layout_and_other_static_properties(is_declared):
    declared = {"ndim": 2, "dtype": dalify.types.FLOAT} if is_declared else {}

    @dalify.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def graph() -> Any:
        offsets = fn.external_source(source=lambda: RANDOM.random((3, FRAMES, 2), np.float32), **declared)
        moved = fn.transforms.translation(offset=fn.per_frame(offsets))
        assert (moved.layout, moved.ndim) == (("F**", 3) if is_declared else (None, None))
        return fn.transforms.combine(moved, fn.transforms.scale(scale=[2.0, 3.0]))

    pipe = graph()
    (batch,) = pipe.run()
    assert batch.layout() == "F**"
    assert batch.as_array().shape == (3, FRAMES, 2, 3)
    pipe.close()


def test_frames_that_do_not_agree():
    with pytest.raises(ShapeError, match=r"different numbers of frames: \[4, 5\]"):
        run_dalify("transforms.rotation", angle=frames(), center=Each(np.ones((3, 5, 2), np.float32), "F*"))
    with pytest.raises(ShapeError, match="different numbers of frames"):
        run_dalify("transforms.rotation", list(MATRICES[:, :2]), layouts="F**", angle=frames())
