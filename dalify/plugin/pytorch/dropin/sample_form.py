"""The form of a sample: the places of the image and of the other values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.utils.data import default_collate

from dalify.plugin.pytorch.dropin.collating import collate_labels

IMAGE = "image"
"""The place of the image in a template."""

MAX_VIEWS = 64
"""The maximum number of views of an image; torch computes samples with more of them."""


@dataclass(frozen=True)
class ViewPlace:
    """The place of one of several views of the image in a template."""

    number: int


@dataclass(frozen=True)
class NamedParts:
    """The parts of a named tuple in a template. Unlike named tuples, those of two types are never equal.

    Attributes:
        kind: the class.
        parts: the template of each field.
    """

    kind: Any
    parts: tuple[Any, ...]


def is_named_tuple(kind: Any) -> bool:
    """Return whether a value is a class of named tuples, not derived from another one."""
    return isinstance(kind, type) and kind.__bases__ == (tuple,) and hasattr(kind, "_field_defaults")


@dataclass(frozen=True)
class SampleForm:
    """The form of a sample.

    Attributes:
        template: `IMAGE`, a `ViewPlace`, the index of another value, or a tuple, list or dictionary of these, or
            `NamedParts`.
    """

    template: Any

    def sample(self, image: Any, values: tuple[Any, ...]) -> Any:
        """Return a sample with an image, or a list of its views, and other values."""
        return _filled(self.template, image, values)

    def batch(self, images: Any, values: list[tuple[Any, ...]]) -> Any:
        """Return what torch's collate function returns for samples with one image.

        Args:
            images: the images, stacked.
            values: the other values of each sample.
        """
        return _collated(self.template, images, list(zip(*values, strict=True)), is_in_dictionary=False)


def _filled(template: Any, image: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(template, dict):
        return {name: _filled(part, image, values) for name, part in template.items()}
    if isinstance(template, NamedParts):
        return template.kind(*(_filled(part, image, values) for part in template.parts))
    if isinstance(template, tuple | list):
        return type(template)(_filled(part, image, values) for part in template)
    if isinstance(template, ViewPlace):
        return image[template.number]
    return image if template == IMAGE else values[template]


def _collated(template: Any, images: Any, columns: list[tuple[Any, ...]], *, is_in_dictionary: bool) -> Any:
    if isinstance(template, dict):
        return {name: _collated(part, images, columns, is_in_dictionary=True) for name, part in template.items()}
    if isinstance(template, NamedParts):
        return template.kind(*(_collated(part, images, columns, is_in_dictionary=False) for part in template.parts))
    if isinstance(template, tuple | list):
        return [_collated(part, images, columns, is_in_dictionary=False) for part in template]
    if template == IMAGE:
        return images
    # torch passes on the values of a dictionary as a list, those of a tuple as a tuple; it returns strings unchanged.
    return default_collate(list(columns[template])) if is_in_dictionary else collate_labels(list(columns[template]))
