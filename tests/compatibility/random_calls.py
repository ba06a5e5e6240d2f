"""Random calls: one operator with random data and arguments, constants or with one value for each sample or frame.

Every choice is drawn from the seed of the call, so both libraries run the same one.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

_BATCH = 3
_Maker = Callable[[random.Random], Any]


def _one_of(*values: Any) -> _Maker:
    return lambda draw: draw.choice(values)


def _integer(least: int, largest: int) -> _Maker:
    return lambda draw: draw.randint(least, largest)


def _number(least: float, largest: float) -> _Maker:
    return lambda draw: round(draw.uniform(least, largest), 3)


def _two(make: _Maker) -> _Maker:
    return lambda draw: [make(draw), make(draw)]


class _Varied:
    """An argument that may have a value for each sample, or for each frame of a sequence."""

    def __init__(self, make: _Maker, dtype: str = "float32", *, by_frame: bool = False) -> None:
        self.make, self.dtype, self.by_frame = make, dtype, by_frame


class _Type:
    """The name of an element type or a filter in `types`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"types.{self.name}"


_FLAG = _Varied(_integer(0, 1), "int32")
_POLICY = {"out_of_bounds_policy": _one_of("pad", "trim_to_shape", "error")}
_DTYPE = {"dtype": _one_of(_Type("FLOAT"), _Type("UINT8"), _Type("INT16"))}
_NEAREST = {"interp_type": _one_of(_Type("INTERP_NN"))}
_POSITION = {"crop_pos_x": _Varied(_number(0, 1)), "crop_pos_y": _Varied(_number(0, 1))}
_LIGHT = {
    "brightness": _Varied(_number(0, 2), by_frame=True),
    "contrast": _Varied(_number(0, 2), by_frame=True),
    "brightness_shift": _Varied(_number(-0.5, 1), by_frame=True),
    "contrast_center": _Varied(_number(-50, 100), by_frame=True),
}
_AXES = {"axes": _one_of([0], [1], [-1], [0, 1], [1, 0], [])}
_REDUCED = {**_AXES, "keep_dims": _one_of(True, False)}
_JOINED = {"axis": _integer(-2, 1)}
# Arguments by the kind of the input, and the operator with its arguments. Those in the second mapping are always there.
_IMAGES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "crop": (
        {**_POSITION, **_POLICY, **_DTYPE, "rounding": _one_of("round", "truncate"), "fill_values": _number(-5, 300)},
        {"crop": _Varied(_two(_integer(1, 9)))},
    ),
    "slice": (
        {**_POLICY, **_DTYPE, "fill_values": _number(-5, 300), "start": _Varied(_two(_integer(-2, 4)), "int32")},
        {"shape": _Varied(_two(_integer(1, 9)), "int32"), "axis_names": _one_of("HW", "WH")},
    ),
    "pad": (
        {"fill_value": _Varied(_number(-5, 300)), "align": _Varied(_two(_integer(1, 4)), "int32")},
        {"shape": _Varied(_two(_one_of(-1, 0, 3, 8)), "int32"), "axis_names": _one_of("HW", "WH")},
    ),
    "erase": (
        {"centered_anchor": _one_of(True, False), "fill_value": _Varied(_number(-5, 300))},
        {
            "anchor": _Varied(_two(_number(-1, 8))),
            "shape": _Varied(_two(_number(0, 5))),
            "axis_names": _one_of("HW", "WH"),
        },
    ),
    "crop_mirror_normalize": (
        {**_POSITION, **_POLICY, "crop": _Varied(_two(_integer(1, 9))), "mirror": _FLAG, "mean": _number(0, 99)},
        {"std": _number(1, 99), "scale": _number(0.5, 3), "shift": _number(-3, 3)},
    ),
    "flip": ({"vertical": _FLAG}, {"horizontal": _FLAG}),
    "brightness_contrast": ({**_LIGHT, **_DTYPE}, {}),
    "rotate": (
        {"fill_value": _number(-5, 50), "keep_size": _one_of(True, False)},
        {"angle": _Varied(_one_of(90.0, 180.0, -90.0), by_frame=True), **_NEAREST},
    ),
}
_TENSORS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    **{f"reductions.{name}": (_REDUCED, {}) for name in ("sum", "min", "max", "mean", "mean_square", "rms")},
    "cast": ({}, _DTYPE),
    "cat": ({}, _JOINED),
    "stack": ({"axis_name": _one_of("X", "Y")}, _JOINED),
    "expand_dims": ({"new_axis_names": _one_of("X", "Y")}, {"axes": _one_of([0], [1], [2])}),
    "reshape": ({"layout": _one_of("XY", "X")}, {"shape": _one_of([-1], [-1, 1], [1, -1])}),
    "transpose": ({"perm": _one_of([1, 0], [0, 1]), "transpose_layout": _one_of(True, False)}, {}),
    "one_hot": (
        {"axis": _integer(-1, 2), "on_value": _number(1, 5), "off_value": _number(-5, 0), **_DTYPE},
        {"num_classes": _integer(1, 9)},
    ),
    "lookup_table": (
        {"default_value": _number(-5, 5), **_DTYPE},
        {"keys": _one_of([0, 3, 200]), "values": _one_of([1.5, -2.0, 300.0])},
    ),
    "normalize": (
        {"scale": _number(0.5, 5), "shift": _number(-5, 5), "ddof": _integer(0, 1), "epsilon": _number(1, 3)},
        {"axes": _one_of([0], [1], [0, 1])},
    ),
}


class RandomCall:
    """A call of an operator that runs with either library.

    Args:
        seed: determines the call.

    Attributes:
        described: operator, data and arguments.
    """

    def __init__(self, seed: int) -> None:
        draw, self._values = random.Random(seed), np.random.default_rng(seed)
        self._name = draw.choice(sorted({*_IMAGES, *_TENSORS}))
        is_image = self._name in _IMAGES
        self._layout = draw.choice(("HWC", "CHW", "HW", "FHWC") if is_image else ("", "AB"))
        dtype = draw.choice(
            ("uint8", "int16", "float32") if is_image else ("uint8", "int8", "uint16", "int32", "float32")
        )
        self._samples = [self._sample(draw, dtype, 0 if number else 1) for number in range(_BATCH)]
        self._inputs = draw.randint(1, 3) if self._name in ("cat", "stack") else 1
        optional, required = (_IMAGES if is_image else _TENSORS)[self._name]
        chosen = {name: make for name, make in optional.items() if draw.random() < 0.5}
        self._arguments = {name: self._argument(draw, make) for name, make in {**chosen, **required}.items()}
        shapes = [sample.shape for sample in self._samples]
        self.described = f"fn.{self._name}: {self._inputs} x {dtype} {self._layout} {shapes}, {self._arguments}"

    def run(self, dali: Any) -> Any:
        """Return the compared values, or the exception."""
        pipe = dali.Pipeline(batch_size=_BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1)
        try:
            with pipe:
                inputs = [self._source(dali, self._samples, self._layout) for _ in range(self._inputs)]
                arguments = {name: self._given(dali, value) for name, value in self._arguments.items()}
                pipe.set_outputs(functools.reduce(getattr, self._name.split("."), dali.fn)(*inputs, **arguments))
            pipe.build()
            (output,) = pipe.run()
            samples = [np.array(output.at(index)) for index in range(_BATCH)]
        except Exception as error:
            return error
        return [str(output.dtype).rpartition(".")[2], output.layout(), samples]

    def _sample(self, draw: random.Random, dtype: str, least: int) -> np.ndarray:
        """Return random values; images have pixels, other samples may be empty if `least` is 0."""
        extents = {"C": 3, "F": draw.randint(1, 3)}
        shape = [extents.get(letter) or draw.randint(1, 12) for letter in self._layout]
        if self._name in _TENSORS:
            shape = [draw.randint(least, 4) for _ in range(2)]
        return self._values.integers(0, 100, shape).astype(dtype)

    def _argument(self, draw: random.Random, make: Any) -> Any:
        """Return a constant, or a list of the values of all samples with their layout."""
        if not isinstance(make, _Varied):
            return make(draw)
        counts = [len(sample) for sample in self._samples]
        if make.by_frame and self._layout == "FHWC" and draw.random() < 0.5:
            return [np.array([make.make(draw) for _ in range(count)], make.dtype) for count in counts], "F"
        if draw.random() < 0.4:
            return [np.array(make.make(draw), make.dtype) for _ in counts], ""
        return make.make(draw)

    def _given(self, dali: Any, value: Any) -> Any:
        if isinstance(value, tuple):
            return self._source(dali, *value)
        return getattr(dali.types, value.name) if isinstance(value, _Type) else value

    @staticmethod
    def _source(dali: Any, samples: Sequence[np.ndarray], layout: str) -> Any:
        return dali.fn.external_source(lambda: [sample.copy() for sample in samples], layout=layout or None)
