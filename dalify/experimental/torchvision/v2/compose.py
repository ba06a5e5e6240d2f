"""``Compose``: a sequence of transforms as one pipeline that is called with images."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify import fn
from dalify.base.errors import ArgumentTypeError
from dalify.base.fork_hook import Owner
from dalify.experimental.torchvision.v2.conversion import from_pixels, pixels_of, tensor_of
from dalify.experimental.torchvision.v2.operator import Images, check_dimensions, checked_transforms
from dalify.experimental.torchvision.v2.totensor import PILToTensor, ToPILImage, ToPureTensor
from dalify.pipeline import Pipeline

DEFAULT_BATCH_SIZE = 16
DEFAULT_NUM_THREADS = max(1, multiprocessing.cpu_count() // 2)
_INPUT = "input_data"


class Compose:
    """A sequence of transforms as one pipeline.

    It is called with a Pillow image, a tensor ``[C, H, W]`` or a batch ``[..., C, H, W]``, and returns the same kind,
    unless ``ToPureTensor``, ``PILToTensor`` or ``ToPILImage`` is among the transforms. The first call decides whether
    it takes Pillow images or tensors. Random numbers are drawn for each image of a batch.

    It can be the transform of a dataset: each process of a loader creates its own pipelines, whose random numbers
    differ unless a ``seed`` is specified.

    Args:
        op_list: the transforms.
        batch_size: maximum number of images in a call.
        num_threads: number of worker threads.
        dali_pipeline_kwargs: further arguments of ``Pipeline``, such as ``seed``.

    Raises:
        WrongObjectError: an item is not a transform of this package.

    Attributes:
        active_pipeline: the pipeline of the last call; None before the first one.

    Example:
        >>> from dalify.experimental.torchvision import Compose, RandomHorizontalFlip, Resize
        >>> transform = Compose([Resize((32, 48)), RandomHorizontalFlip()])
        >>> transform(torch.zeros(4, 3, 90, 60, dtype=torch.uint8)).shape
        torch.Size([4, 3, 32, 48])
    """

    def __init__(
        self,
        op_list: list[Callable[..., Any]],
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_threads: int = DEFAULT_NUM_THREADS,
        **dali_pipeline_kwargs: Any,
    ) -> None:
        self.op_list: Sequence[Any] = checked_transforms(op_list)
        self.batch_size = batch_size
        self.num_threads = num_threads
        self.dali_pipeline_kwargs = dali_pipeline_kwargs
        self.active_pipeline: Pipeline | None = None
        # By layout, channels, whether the values are floats, and device, because the graph depends on these.
        self._pipelines: dict[tuple[str, int, bool, str], Pipeline] = {}
        self._owner = Owner()
        kinds = [op for op in op_list if isinstance(op, ToPureTensor | PILToTensor | ToPILImage)]
        self._gives_images = isinstance(kinds[-1], ToPILImage) if kinds else None

    def __call__(self, data_input: Any) -> Any:
        """Return the transformed images.

        Raises:
            ArgumentTypeError: neither a Pillow image nor a tensor, or a different kind than in the first call.
            ArgumentValueError: a Pillow image with another mode than L, RGB and RGBA.
            ShapeError: a tensor with fewer than three dimensions.
            BatchSizeError: more images than ``batch_size``.
        """
        if isinstance(data_input, Image.Image):
            found = self._run("HWC", pixels_of(data_input)[None])
            if self._gives_images is False:
                return found[0].permute(2, 0, 1).contiguous()
            return from_pixels(found[0].cpu().numpy())
        if not isinstance(data_input, torch.Tensor):
            raise ArgumentTypeError(
                f"Compose takes Pillow images and torch tensors, not {type(data_input).__name__}.",
                hint="Write torch.from_numpy(array).permute(2, 0, 1) for an array [H, W, C].",
            )
        check_dimensions(data_input)
        leading = data_input.shape[:-3]
        found = self._run("CHW", data_input.reshape(-1, *data_input.shape[-3:]))
        if not self._gives_images:
            return found.reshape(*leading, *found.shape[1:])
        images = [from_pixels(pixels) for pixels in found.permute(0, 2, 3, 1).cpu().numpy()]
        return images if len(images) > 1 else images[0]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the pipelines, which another process creates again."""
        return {**self.__dict__, "_pipelines": {}, "active_pipeline": None}

    def _run(self, layout: str, batch: Any) -> torch.Tensor:
        """Return the outputs of the pipeline for a batch of arrays or tensors, as one tensor."""
        others = next(iter(self._pipelines), (layout,))[0]
        if others != layout:
            names = {"HWC": "Pillow images", "CHW": "tensors"}
            raise ArgumentTypeError(
                f"this Compose was first called with {names[others]}, and now with {names[layout]}.",
                hint="Create one Compose for each kind of input.",
            )
        if isinstance(batch, np.ndarray):
            channels, is_float, device = batch.shape[-1], False, "cpu"
        else:
            channels, is_float = batch.shape[1], batch.is_floating_point()
            device = "cpu" if batch.device.type == "cpu" else "gpu"
        if self._owner.take_over():  # a forked process would draw the random numbers of its parent
            self._pipelines.clear()
        key = layout, channels, is_float, device
        if key not in self._pipelines:
            self._pipelines[key] = self._build(Images(None, layout, channels, is_float, True, device))
        self.active_pipeline = self._pipelines[key]
        (outputs,) = self.active_pipeline.run(**{_INPUT: batch})
        return tensor_of(outputs.as_tensor())

    def _build(self, images: Images) -> Pipeline:
        options: dict[str, Any] = {
            "batch_size": self.batch_size,
            "num_threads": self.num_threads,
            "prefetch_queue_depth": 1,
            **self.dali_pipeline_kwargs,
        }
        pipeline = Pipeline(**options)
        with pipeline:
            source = fn.external_source(name=_INPUT, layout=images.layout, device=images.device)
            images = Images(source, images.layout, images.channels, images.is_float, True, images.device)
            for op in self.op_list:
                images = op._invoke(images)
            pipeline.set_outputs(images.data)
        pipeline.build()
        return pipeline
