"""``precision=``: image outputs are 16-bit floats, all other outputs are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError
from dalify.plugin.pytorch import DALIGenericIterator

OF_TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16}
OF_NUMPY = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TYPES = {"fp16": types.FLOAT16, "bf16": types.BFLOAT16}
NAMES = ["normal", "resized", "bytes", "boxes", "audio", "scaled", "raw"]

precisions = pytest.mark.parametrize("precision", ["fp16", "bf16"])


def outputs(folder: Path, device: str) -> Any:
    """Images normalized, resized to floats, as bytes and computed with; boxes; audio; an input without type."""
    encoded, _ = fn.readers.file(file_root=str(folder), name="files")
    images = fn.decoders.image(encoded)
    if device == "gpu":
        images = images.gpu()
    images = fn.resize(images, size=[24, 20])
    normal = fn.crop_mirror_normalize(
        images, crop=[16, 18], mean=[120.0, 110.0, 100.0], std=[60.0], mirror=fn.random.coin_flip(), name="normal"
    )
    resized = fn.resize(images, size=[10, 12], dtype=types.FLOAT)
    boxes = fn.random.uniform(range=[0.0, 1.0], shape=[5, 4])
    audio = fn.power_spectrum(fn.random.uniform(range=[0.0, 1.0], shape=[32]))
    raw = fn.external_source(source=lambda: np.full((4, 3, 2, 1), 1.3, np.float32), layout="HWC")
    return normal, resized, images, boxes, audio, resized * 3.0, raw


def made(folder: Path, device: str, **options: Any) -> Pipeline:
    define: Callable[..., Pipeline] = pipeline_def(
        batch_size=4, num_threads=2, device_id=0 if device == "gpu" else None, seed=7, **options
    )(lambda: outputs(folder, device))
    pipe = define()
    pipe.build()
    return pipe


def batches(pipe: Pipeline) -> list[torch.Tensor]:
    """Return the outputs of two runs."""
    iterator = DALIGenericIterator(pipe, NAMES)
    return [next(iterator)[0][name].cpu() for _ in range(2) for name in NAMES]


def halves_away(values: torch.Tensor) -> torch.Tensor:
    """Return numbers as float16; ties are rounded away from zero, as in DALI on a CPU."""
    full = values.numpy()
    even = full.astype(np.float16)
    further = np.nextafter(even, np.copysign(np.float16(np.inf), even))
    is_middle = np.abs(full - even) == np.abs(further.astype(np.float32) - full)
    return torch.from_numpy(np.where(is_middle, further, even))


@precisions
@pytest.mark.parametrize("debug", [False, True])
def test_only_images_are_rounded(photo_folder: Path, device: str, precision: str, debug: bool) -> None:
    full = batches(made(photo_folder, device))
    small = batches(made(photo_folder, device, precision=precision, debug=debug))
    for name, wanted, found in zip(NAMES * 2, full, small, strict=True):
        if name in ("bytes", "boxes", "audio"):
            assert found.dtype == wanted.dtype, name
        else:
            assert found.dtype == OF_TORCH[precision], name
            wanted = halves_away(wanted) if (device, precision) == ("cpu", "fp16") else wanted.to(OF_TORCH[precision])
        assert torch.equal(found, wanted), name


@precisions
def test_views_of_numpy(photo_folder: Path, precision: str) -> None:
    out = made(photo_folder, "cpu", precision=precision).run()[0]
    assert out.dtype is TYPES[precision]
    for array in (out.as_array(), np.asarray(out.as_tensor()), out.at(0), np.asarray(out[0])):
        assert array.dtype == OF_NUMPY[precision]
    exchanged = torch.from_dlpack(out[1])
    np.testing.assert_array_equal(exchanged.float().numpy(), np.asarray(out[1]).astype(np.float32))


def test_the_last_operator_stores_it(photo_folder: Path) -> None:
    pipe = made(photo_folder, "cpu", precision="fp16")
    assert "crop_mirror_normalize(cpu)" in next(
        line for line in pipe.explain().splitlines() if "stores float16" in line
    )


def test_a_tap_returns_values_before_narrowing(photo_folder: Path) -> None:
    full = made(photo_folder, "cpu", taps=["normal"])
    small = made(photo_folder, "cpu", taps=["normal"], precision="bf16")
    assert full.run()[0].dtype is types.FLOAT
    assert small.run()[0].dtype is types.BFLOAT16
    np.testing.assert_array_equal(small.tap("normal").as_array(), full.tap("normal").as_array())


def test_random_numbers_and_states_do_not_depend_on_it(photo_folder: Path) -> None:
    full, small = made(photo_folder, "cpu"), made(photo_folder, "cpu", precision="fp16")
    full.run()
    state = full.state_dict()
    small.load_state_dict(state)
    wanted, found = full.run(), small.run()
    np.testing.assert_array_equal(found[3].as_array(), wanted[3].as_array())
    np.testing.assert_array_equal(found[0].as_array(), wanted[0].as_array().astype(np.float16))


def test_mistakes(photo_folder: Path) -> None:
    with pytest.raises(ArgumentValueError, match="precision must be one of fp32, fp16, bf16; got 'half'"):
        made(photo_folder, "cpu", precision="half")
    with pytest.raises(ArgumentValueError, match="pipeline_def"):
        fn.cast(np.zeros(3, np.float32), dtype=types.BFLOAT16)
    serialized = made(photo_folder, "cpu", precision="fp16", output_dtype=[types.FLOAT] + [None] * 6)
    with pytest.raises(Exception, match="output 0 has dtype"):
        serialized.run()
