"""The description of an operator for the battery: `Case`, and short constructors for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dalify
from tests.operators.battery.references import Reference
from tests.operators.readers.datasets import DATASETS

SAMPLES = 5
GONE: Any = object()

# Reasons that several cases have.
NO_CPU = "DALI has it for GPUs only"
OUTSIDE = "DALI has no such function: users write it as an expression"
BATCH = "looks at the other samples of the batch"
DRAWN = "random numbers of its own"
NO_READER = "DALI has no such reader"
FILES_TELL = "the files say their type"
CODE = "holds a Python function"
DEFAULT_AXES = "None: axis_names specify the axes; without both, the axes are those of DALI's default"
DEFAULT_BY_TYPE = "the default depends on the element type: half of its range, 0.5 of floats"
FILTER_DEFAULTS = dict.fromkeys(
    ("interp_type", "mag_filter", "min_filter"),
    "not given: interp_type, then INTERP_LINEAR; DALI's code checks whether the argument was given",
)
RESIZE_DEFAULTS = FILTER_DEFAULTS | dict.fromkeys(
    ("resize_longer", "resize_shorter", "resize_x", "resize_y", "resize_z"),
    "not given; 0 keeps the extent. DALI's code checks whether the argument was given",
)
OUTSIDE_NAMES = {
    "allow_outside_root": "names in data cannot refer to files outside the folder of the dataset unless the user "
    "allows it",
}


@dataclass(frozen=True, eq=False)
class Data:
    """One input: samples of one shape and one more of another, the odd one, which makes a batch ragged."""

    samples: list[np.ndarray]
    layout: str = ""


@dataclass(frozen=True, eq=False)
class Each:
    """An argument that differs from sample to sample; like `Data`, with a value for the odd sample at the end."""

    values: list[np.ndarray]
    layout: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Typical use of one operator.

    Attributes:
        inputs: positional.
        arguments: by name, `Each` for those that differ; or a function from an empty folder to them.
        atol: largest absolute difference to DALI.
        rtol: largest difference to DALI relative to the value, and on float results also to the largest value.
        not_sample_by_sample: why one sample alone gives another result than in its batch.
        not_compared_with_dali: why there is nothing to compare with.
        not_serialized: why the graph cannot be serialized.
        known_late: why type and number of dimensions of the result are unknown when the graph is built.
        share: largest fraction of the elements that may differ from DALI by more than the tolerance.
        variants: further uses by label: changes of the arguments, `GONE` for one that is left out, ``inputs`` for other
            data, ``only=True`` to leave out all typical arguments. `variants` adds other types, layouts and shapes.
        refused: variants that DALI accepts and dalify rejects, each with the reason.
        different: variants with a result that differs from DALI's on purpose, each with the reason.
        reference: an independent implementation for the typical use.
        not_recorded: why results of DALI cannot be recorded.
        other_defaults: arguments with a default that differs from DALI's on purpose, each with the reason.
        own_arguments: arguments that DALI's operator does not have, each with the reason.
        waits: where the GPU kernel waits for the device, as `separate_device` reports it; docs/accelerators.md has the
            reasons. Copies to the device are tables that stay there.
    """

    inputs: tuple[Data, ...] = ()
    arguments: Mapping[str, Any] | Callable[[Path], Mapping[str, Any]] = field(default_factory=dict)
    atol: float = 0.0
    rtol: float = 0.0
    not_sample_by_sample: str = ""
    not_compared_with_dali: str = ""
    not_serialized: str = ""
    known_late: str = ""
    share: float = 0.0
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    different: Mapping[str, str] = field(default_factory=dict)
    reference: Reference | None = None
    not_recorded: str = ""
    other_defaults: Mapping[str, str] = field(default_factory=dict)
    own_arguments: Mapping[str, str] = field(default_factory=dict)
    waits: Sequence[str] = ()

    def given(self, folder: Path) -> Mapping[str, Any]:
        """Return the arguments; files that they name lie in ``folder``."""
        return self.arguments(folder) if callable(self.arguments) else self.arguments


def exact_case(*inputs: Data, **given: Any) -> Case:
    own = {name: given.pop(name) for name in Case.__dataclass_fields__ if name in given}
    return Case(inputs=inputs, arguments=own.pop("arguments", given), **own)


def image_case(*inputs: Data, **given: Any) -> Case:
    """Bytes of an image, rounded: DALI may be one off."""
    return exact_case(*inputs, atol=1, **given)


def float_case(*inputs: Data, **given: Any) -> Case:
    return exact_case(*inputs, rtol=1e-5, **given)


def reader_case(name: str, **given: Any) -> Case:
    """A reader on the data that its own tests use; other arguments change those of the reader."""
    own = {key: given.pop(key) for key in Case.__dataclass_fields__ if key in given}

    def arguments(folder: Path) -> dict[str, Any]:
        data = folder.with_name(f"{folder.name}-{name}")  # not inside: another reader's classes are its folders
        if data not in _written:
            data.mkdir()
            _written[data] = DATASETS[name](data, SAMPLES)
        typical = {key: value(dalify) if callable(value) else value for key, value in _written[data].items()}
        return {key: value for key, value in {**typical, **given}.items() if value is not None}

    return Case(arguments=arguments, not_sample_by_sample="each run reads the next entries", **own)


_written: dict[Path, dict[str, Any]] = {}


def each(values: Any, dtype: Any = np.float32) -> Each:
    """Return an argument with a value per sample."""
    return Each([np.asarray(value, dtype) for value in values])
