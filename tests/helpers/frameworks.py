"""The frameworks with a plugin: creation of their iterators, and conversion of their batches."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dalify import fn, pipeline_def, types
from dalify.pipeline import Pipeline


def imported(package: str) -> ModuleType:
    """Import a framework and ignore its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(package)


def addresses_of_outputs(pipe: Pipeline) -> list[int]:
    """Return a list to which the pipeline appends the address of the first output of each batch."""
    addresses: list[int] = []
    collect = pipe.next_outputs

    def record() -> Any:
        outputs = collect()
        addresses.append(outputs[0].data_ptr())
        return outputs

    pipe.next_outputs = record  # type: ignore[method-assign]
    return addresses


@pipeline_def(batch_size=2, num_threads=1, precision="bf16")
def bfloat16_ones() -> Any:
    """Return images ``[1, 4, 3]`` of bfloat16 that are 1."""
    images = fn.external_source(source=lambda: np.full((2, 4, 3, 1), 127, np.uint8), layout="HWC")
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[126.0], std=[1.0])


@dataclass(frozen=True)
class Framework:
    """One framework.

    Attributes:
        plugin: name of the plugin below ``dalify.plugin``.
        package: required package; empty for NumPy.
        to_numpy: converts a tensor to an array.
        gives_one: True if a batch is not a list with one item per pipeline.
    """

    plugin: str
    package: str = ""
    to_numpy: Callable[[Any], np.ndarray] = np.asarray
    gives_one: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the package is installed."""
        return not self.package or importlib.util.find_spec(self.package) is not None

    def module(self) -> ModuleType:
        """Import the plugin."""
        if self.package:
            imported(self.package)
        return importlib.import_module(f"dalify.plugin.{self.plugin}")

    def loader(self, pipelines: Any, names: Sequence[str], **options: Any) -> Any:
        """Return the iterator."""
        plugin = self.module()
        if "last_batch_policy" in options:
            options["last_batch_policy"] = plugin.LastBatchPolicy[options["last_batch_policy"]]
        return plugin.DALIGenericIterator(pipelines, list(names), **options)

    def parts(self, batch: Any, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return one dictionary of NumPy arrays per pipeline."""
        if self.gives_one:
            batch = [batch]
        return [{name: self._plain(value) for name, value in part.items()} for part in batch]

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.to_numpy(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.to_numpy(item) for item in value)
        return self.to_numpy(value)


FRAMEWORKS = {
    "numpy": Framework("numpy"),
    "torch": Framework("pytorch", "torch"),
    "jax": Framework("jax", "jax", gives_one=True),
    "tensorflow": Framework("tf", "tensorflow"),
    "paddle": Framework("paddle", "paddle", lambda tensor: tensor.numpy()),
}
MISSING = [name for name, framework in FRAMEWORKS.items() if not framework.is_installed]
