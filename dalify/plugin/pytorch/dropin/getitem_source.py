"""Images that the ``__getitem__`` of a user's dataset opens, see `image_getitem`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.image_symbols import SeparatedImage
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.plan import AnyImage, NotRecognizedError
from dalify.plugin.pytorch.dropin.sample_form import IMAGE
from dalify.plugin.pytorch.dropin.sources import FileSource
from dalify.plugin.pytorch.dropin.views import Views


@contextmanager
def _copied_notes(error: Exception) -> Iterator[None]:
    """Add the notes of an error to another one that is raised in the context."""
    try:
        yield
    except Exception as other:
        for note in getattr(error, "__notes__", ()):
            other.add_note(note)
        raise


def _composed(transforms: tuple[Any, ...]) -> Any:
    """Return one transform for several; None for none."""
    if len(transforms) > 1:
        return sys.modules["torchvision.transforms"].Compose(transforms)
    return transforms[0] if transforms else None


class GetitemSource(FileSource):
    """Image files or arrays with labels.

    If code of the user follows the transforms, `read` returns a `Begun` in place of the label.

    Args:
        dataset: the dataset.
        separated: its method without the operations on images.
    """

    def __init__(self, dataset: Any, separated: SeparatedImage) -> None:
        image, *others = separated.views
        transform = _composed(image.transforms)
        if others:
            transforms = tuple(_composed(view.transforms) for view in separated.views)
            transform = Views(transforms, list, tuple(range(len(transforms))))
        options = {"is_rgb": image.is_rgb, "opens_files": separated.opens_files, "decode": image.decode}
        super().__init__(dataset, (transform, None), len(dataset), separated.lookup, **options, folder=separated.folder)
        self.user_code, self.watched, self.inner = separated.user_code, separated.watched, separated.inner
        self.form = None if separated.form.template == (IMAGE, 0) else separated.form
        self._has_late_code, self.is_joint = separated.has_late_code, separated.is_joint
        if self.is_joint and self.plan.unsupported:
            assert self.plan.reason is not None
            raise NotRecognizedError(f"{self.plan.reason.text}, in a transform of image and mask", code="TF03")

    def path_and_label(self, index: Any, draws: TorchDraws | None = None) -> tuple[Any, Any]:
        """Return path and label of a sample; see `Source.path_and_label`."""
        try:
            path, values = super().path_and_label(index)
        except Exception as error:
            if not self.user_code:  # which must not run twice
                with nullcontext() if draws is None else draws.as_default(), _copied_notes(error):
                    self.dataset[index]  # raises the error with the frames of the user
            raise
        return path, values if self._has_late_code or self.is_joint else self._label(values)

    def read(self, index: Any, draws: TorchDraws) -> tuple[AnyImage, Any]:
        """Read one sample; see `Source.read`. Values that are transformed together with the image are transformed."""
        image, begun = super().read(index, draws)
        if not self.is_joint:
            return image, begun
        assert isinstance(image, LazyImage)
        # torchvision computes the other values, with an image without pixels; the image gets the same random numbers.
        stub = torch.empty((0, 3, image.height, image.width), dtype=torch.uint8)
        state = draws.get_state()
        with draws.as_default():
            _, *results = self.transform(sys.modules["torchvision.tv_tensors"].Image(stub), *begun.values)
        draws.set_state(state)
        return image, self._label(begun.finish(results))

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample; see `Source.sample`."""
        result, label = self._transformed(index, draws)
        label = self._label(label.finish(None)) if self._has_late_code else label
        return (result, label) if self.form is None else self.form.sample(result, label)

    def _label(self, values: tuple[Any, ...]) -> Any:
        return values[0] if self.form is None else values
