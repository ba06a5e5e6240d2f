"""A pipeline as a ``tf.data.Dataset`` whose external sources are fed by other datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.pipeline import Pipeline
from dalify.plugin.tf.dataset import PipelineDataset
from dalify.plugin.tf.running import Input

__all__ = ["DALIDatasetWithInputs", "Input"]


class DALIDatasetWithInputs(PipelineDataset):
    """A ``DALIDataset`` whose pipeline has external sources that are fed by other datasets.

    It ends with the shortest dataset; the last batch may have fewer samples.

    `input_datasets` has for each name of an ``fn.external_source`` without source a ``tf.data.Dataset`` of samples, or
    `Input` of one. See ``DALIDataset`` for the other arguments.

    Raises:
        ArgumentValueError: names do not match the external sources.

    Example:
        >>> pipe = training()  # has fn.external_source(name="images")
        >>> dataset = DALIDatasetWithInputs(pipe, tf.uint8, input_datasets={"images": Input(images, batch=True)})
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: Any = None,
        output_shapes: Any = None,
        fail_on_device_mismatch: bool = True,
        *,
        input_datasets: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        inputs = {} if input_datasets is None else input_datasets
        super().__init__(pipeline, output_dtypes, output_shapes, fail_on_device_mismatch, inputs=inputs, **options)
