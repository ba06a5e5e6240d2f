"""Images that the ``__getitem__`` of a user's dataset opens, see `image_getitem`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.image_getitem import SeparatedImage
from dalify.plugin.pytorch.dropin.sample_form import IMAGE
from dalify.plugin.pytorch.dropin.sources import FileSource


@contextmanager
def _copied_notes(error: Exception) -> Iterator[None]:
    """Add the notes of an error to another one that is raised in the context."""
    try:
        yield
    except Exception as other:
        for note in getattr(error, "__notes__", ()):
            other.add_note(note)
        raise


class GetitemSource(FileSource):
    """Image files or arrays with labels.

    If code of the user follows the transforms, labels are functions without arguments that return the values.

    Args:
        dataset: the dataset.
        separated: its method without the operations on images.
    """

    def __init__(self, dataset: Any, separated: SeparatedImage) -> None:
        transforms = separated.transforms
        transform = transforms[0] if len(transforms) == 1 else None
        if len(transforms) > 1:
            transform = sys.modules["torchvision.transforms"].Compose(transforms)
        options = {"is_rgb": separated.is_rgb, "opens_files": separated.opens_files}
        super().__init__(dataset, (transform, None), len(dataset), separated.lookup, **options)
        self.user_code, self.watched, self.inner = separated.user_code, separated.watched, separated.inner
        self.form = None if separated.form.template == (IMAGE, 0) else separated.form
        self._has_late_code = separated.has_late_code

    def path_and_label(self, index: Any, draws: TorchDraws | None = None) -> tuple[Any, Any]:
        """Return path and label of a sample; see `Source.path_and_label`."""
        try:
            path, values = super().path_and_label(index)
        except Exception as error:
            if not self.user_code:  # which must not run twice
                with nullcontext() if draws is None else draws.as_default(), _copied_notes(error):
                    self.dataset[index]  # raises the error with the frames of the user
            raise
        return path, values if self._has_late_code else self._label(values)

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample; see `Source.sample`."""
        result, label = self._transformed(index, draws)
        label = self._label(label()) if self._has_late_code else label
        return (result, label) if self.form is None else self.form.sample(result, label)

    def _label(self, values: tuple[Any, ...]) -> Any:
        return values[0] if self.form is None else values
