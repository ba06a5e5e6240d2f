"""A pipeline as a ``tf.data.Dataset`` whose external sources are fed by other datasets."""

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
