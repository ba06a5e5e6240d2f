"""Iterators over pipes for PyTorch: ``for images, labels in HPUResnetPytorchIterator(mediapipe=pipe)``.

Tensors own their memory: they remain valid when the next batch is requested.
"""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, PipelineStateError, check_option
from dalify.base.optional import torch
from dalify.mediapipe.mediapipe import MediaPipe
from dalify.mediapipe.tensors import DeviceTensor

_LAST_BATCH = ("pad", "partial")


class ProxyDevice:
    """Finds the tensors of the last batch by address, for iterators derived by programs."""

    def __init__(self, pipe: MediaPipe) -> None:
        self._pipe = pipe

    def get_tensor(self, address: int) -> Any:
        """Return the tensor at an address (``output.dev_addr``).

        Raises:
            PipelineStateError: the last batch has no tensor at this address.
        """
        for output in self._pipe.last_outputs:
            if output.dev_addr == address:
                return output.torch()
        raise PipelineStateError(
            "the last batch has no tensor at this address.", hint="Call get_tensor before the next run()."
        )


class PytorchIterator:
    """Iterates over the batches of a pipe, as a list with one tensor per output; a loop is an epoch.

    Args:
        mediapipe: the pipe; it is built here if necessary.
        device: accepted but ignored: tensors are on the device of the pipe.
        fw_type: accepted but ignored.
        labels_dtype: dtype for integer outputs with one number per sample; None for no conversion.
        last_batch: a padded last batch is returned completely ("pad") or without padding ("partial"). A reader drops
            it with ``drop_remainder=True``.
    """

    _labels = ""  # default of labels_dtype, a name in torch

    def __init__(
        self,
        mediapipe: MediaPipe | None = None,
        device: Any = None,
        fw_type: Any = None,
        *,
        labels_dtype: Any = None,
        last_batch: str = "pad",
    ) -> None:
        if not isinstance(mediapipe, MediaPipe):
            raise ArgumentTypeError(f"mediapipe must be a MediaPipe; got {type(mediapipe).__name__}.")
        check_option("last_batch", last_batch, _LAST_BATCH)
        self.pipe = mediapipe
        self.device = device
        self.fw_type = fw_type
        self.labels_dtype = getattr(torch, self._labels) if labels_dtype is None and self._labels else labels_dtype
        self.last_batch = last_batch
        self.pipe.build()
        self.proxy_device = ProxyDevice(self.pipe)

    def __iter__(self) -> PytorchIterator:
        """Start an epoch."""
        self.pipe.iter_init()
        return self

    def __next__(self) -> Any:
        """Return the next batch."""
        return self.format_batch([self._tensor(output) for output in self.pipe.run()])

    def _tensor(self, output: DeviceTensor) -> Any:
        tensor = output.torch()
        if self.last_batch == "partial" and output.valid is not None and len(tensor) == self.pipe.batch_size:
            tensor = tensor[: output.valid]
        is_label = tensor.ndim == 1 and not tensor.is_floating_point()
        return tensor.to(self.labels_dtype) if is_label and self.labels_dtype is not None else tensor

    def format_batch(self, tensors: list[Any]) -> Any:
        """Return a batch in the order that programs expect."""
        return tensors

    def __len__(self) -> int:
        return len(self.pipe)


class ResnetPytorchIterator(PytorchIterator):
    """Images and labels; labels are int64, as loss functions expect. See ``PytorchIterator``."""

    _labels = "int64"


class SsdPytorchIterator(PytorchIterator):
    """Images, ids, (heights, widths), boxes, labels. See ``PytorchIterator``."""

    def format_batch(self, tensors: list[Any]) -> Any:
        """Return a batch in the order that programs expect."""
        if len(tensors) < 5:
            raise ArgumentValueError(
                f"{type(self).__name__} needs a pipe with images, ids, sizes, boxes and labels; it has {len(tensors)} "
                "outputs.",
                hint="Use HPUGenericPytorchIterator for any other pipe.",
            )
        images, ids, sizes, boxes, labels = tensors[:5]
        sizes = sizes.to(torch.int64)
        pair = [sizes[:, 0], sizes[:, 1]]
        return images, ids.to(torch.int64), pair, boxes, labels.to(torch.int64)


# In MediaPipe, these names select the device; here the pipe determines it.
MediaGenericPytorchIterator = HPUGenericPytorchIterator = PytorchIterator
CPUGenericPytorchIterator = CPUHPUGenericPytorchIterator = PytorchIterator
UnetPytorchIterator = HPUUnetPytorchIterator = HPUUnet3DPytorchIterator = PytorchIterator
CPUUnetPytorchIterator = CPUHPUUnet3DPytorchIterator = PytorchIterator
HPUResnetPytorchIterator = CPUHPUResnetPytorchIterator = CPUResnetPytorchIterator = ResnetPytorchIterator
HPUSsdPytorchIterator = CPUSsdPytorchIterator = SsdPytorchIterator
