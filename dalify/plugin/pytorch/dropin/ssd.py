"""COCO as loaded by SSD's reference programs: the same boxes, crops, flips and colors, with dalify's kernels.

Dataset and transforms are classes of the program, so they are recognized by their attributes. Some samples are computed
by both implementations, and dalify is used only if they are identical.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dalify.plugin.pytorch.dropin.choice import UNCHANGED
from dalify.plugin.pytorch.dropin.collating import collates_as_torch
from dalify.plugin.pytorch.dropin.draws import RandomStates, TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.iterators import CallerIterator, ThreadIterator
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage
from dalify.plugin.pytorch.dropin.loader import DataLoader, LoaderReport
from dalify.plugin.pytorch.dropin.lowering import check_settings
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.sources import FileSource

Size = tuple[int, int]
_DATASET_ATTRIBUTES = ("img_folder", "images", "img_keys", "transform")
_TRANSFORM_ATTRIBUTES = ("val", "trans_val", "crop", "hflip", "img_trans", "normalize", "encoder")
_PADDED_BOXES = 200
_MIN_EXTENT, _MAX_EXTENT = 0.3, 1.0
_MIN_RATIO, _MAX_RATIO = 0.5, 2
_TRIALS = 8  # one sample each; enough for samples with and without crops and flips


def is_ssd_dataset(dataset: Any) -> bool:
    """Return whether a dataset of any class has the attributes of SSD's COCODetection."""
    return all(hasattr(dataset, name) for name in _DATASET_ATTRIBUTES) and all(
        hasattr(dataset.transform, name) for name in _TRANSFORM_ATTRIBUTES
    )


class SsdSource(FileSource):
    """Images with boxes.

    Args:
        dataset: object with ``img_folder``; ``images``, a mapping to (name, (height, width), boxes); ``img_keys``; and
            ``transform``: for evaluation (``val``) ``trans_val``, for training ``crop``, ``hflip``, ``img_trans``,
            ``normalize`` and ``encoder``.

    Raises:
        NotRecognizedError: an attribute is not recognized.
    """

    def __init__(self, dataset: Any) -> None:
        transform = dataset.transform
        self._is_evaluation = bool(transform.val)
        try:
            if self._is_evaluation:
                transforms = transform.trans_val
            else:
                transforms = type(transform.img_trans)([*transform.img_trans.transforms, transform.normalize])
                self._options = list(transform.crop.sample_options)
                self._probability = float(transform.hflip.p)
            self._tries = int(getattr(transform.crop, "num_cropping_iterations", 1))
            count = len(dataset.img_keys)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise NotRecognizedError(f"the dataset resembles SSD's COCODetection, but differs: {error!r}") from error
        super().__init__(dataset, (transforms, None), count, self._path_and_key)
        if not self.plan.is_complete:
            assert self.plan.reason is not None
            raise NotRecognizedError(*self.plan.reason)
        first = [] if self._is_evaluation else [type(part).__name__ for part in (transform.crop, transform.hflip)]
        self.plan = replace(self.plan, is_random=not self._is_evaluation, names=(*first, *self.plan.names))
        self.description += " with boxes"

    def _path_and_key(self, index: Any) -> tuple[Path, Any]:
        key = self.dataset.img_keys[index]
        return Path(self.dataset.img_folder, self.dataset.images[key][0]), key

    def sample(self, index: Any, draws: TorchDraws) -> tuple[Any, Any, Size, Any, Any]:
        """Compute one sample: image, key, (height, width), boxes, labels.

        Raises:
            IndexError: the sample does not exist.
            OSError: the file cannot be read, or any other error of Pillow.
        """
        lazy_image, key = self.read(index, draws)
        assert isinstance(lazy_image, LazyImage), "dalify bug: an image that was not opened as RGB"
        _, (height, width), objects = self.dataset.images[key]
        corners = [(x / width, y / height, (x + w) / width, (y + h) / height) for (x, y, w, h), _ in objects]
        boxes, labels = torch.tensor(corners), torch.tensor([label for _, label in objects])
        if self._is_evaluation:
            image = self.plan.sample(lazy_image, draws)
            return image, key, (height, width), *_padded(boxes, labels, self._max_boxes())
        state = draws.python.getstate()
        try:
            size, boxes, labels = self._crop_window(lazy_image, (height, width), boxes, labels, draws.python)
            if draws.python.random() < self._probability:
                lazy_image.flip(1, True)
                boxes = torch.stack([1.0 - boxes[:, 2], boxes[:, 1], 1.0 - boxes[:, 0], boxes[:, 3]], dim=1)
            image = self.plan.sample(lazy_image, draws)
        except Exception:  # for a damaged file, torch raises before it draws random numbers
            draws.python.setstate(state)
            raise
        return image, key, size, *self.dataset.transform.encoder.encode(boxes, labels)

    def _max_boxes(self) -> int:
        known = inspect.signature(type(self.dataset.transform).__call__).parameters.get("max_num")
        return _PADDED_BOXES if known is None else int(known.default)

    def _crop_window(
        self, lazy_image: LazyImage, size: Size, boxes: Any, labels: Any, draws: Any
    ) -> tuple[Size, Any, Any]:
        """Draw windows until one keeps enough of the boxes, and crop it."""
        height, width = size
        while (option := draws.choice(self._options)) is not None:
            minimum, maximum = option
            for _ in range(self._tries):
                across = draws.uniform(_MIN_EXTENT, _MAX_EXTENT)
                down = draws.uniform(_MIN_EXTENT, _MAX_EXTENT)
                if not _MIN_RATIO <= across / down <= _MAX_RATIO:
                    continue
                left, top = draws.uniform(0, 1.0 - across), draws.uniform(0, 1.0 - down)
                window = left, top, left + across, top + down
                overlaps = _overlaps(boxes, torch.tensor(window))
                if minimum is not None and not bool((overlaps > minimum).all()):
                    continue
                if maximum is not None and not bool((overlaps < maximum).all()):
                    continue
                center_x, center_y = (0.5 * (boxes[:, axis] + boxes[:, axis + 2]) for axis in (0, 1))
                inside = (center_x > window[0]) & (center_x < window[2])
                inside &= (center_y > window[1]) & (center_y < window[3])
                if not bool(inside.any()):
                    continue
                kept = [boxes[inside, 0].clamp(min=window[0]), boxes[inside, 1].clamp(min=window[1])]
                kept += [boxes[inside, 2].clamp(max=window[2]), boxes[inside, 3].clamp(max=window[3])]
                origin, extent = (left, top) * 2, (across, down) * 2
                moved = [(edge - origin[axis]) / extent[axis] for axis, edge in enumerate(kept)]
                x, y, x_end, y_end = (int(part * (width, height)[axis % 2]) for axis, part in enumerate(window))
                lazy_image.crop(y, x, y_end - y, x_end - x)
                return (y_end - y, x_end - x), torch.stack(moved, dim=1), labels[inside]
        return size, boxes, labels


def _padded(boxes: Any, labels: Any, maximum: int) -> tuple[Any, Any]:
    all_boxes, all_labels = torch.zeros(maximum, 4), torch.zeros(maximum, dtype=torch.long)
    all_boxes[: len(boxes)] = boxes
    all_labels[: len(labels)] = labels
    return all_boxes, all_labels


def _overlaps(boxes: Any, window: Any) -> Any:
    """Return the intersection over union of each box and a window, float32 ``[boxes]``."""
    extent = (torch.minimum(boxes[:, 2:], window[2:]) - torch.maximum(boxes[:, :2], window[:2])).clamp(min=0)
    common = extent[:, 0] * extent[:, 1]
    sides, of_window = boxes[:, 2:] - boxes[:, :2], window[2:] - window[:2]
    return common / (sides[:, 0] * sides[:, 1] + of_window[0] * of_window[1] - common)


class SsdFetcher(Fetcher):
    """Computes batches of samples with boxes.

    Args:
        source: source of the samples.
        collate: the user's function; None for torch's default.
    """

    def __init__(self, source: SsdSource, collate: Callable[[Any], Any] | None) -> None:
        super().__init__(source.dataset, {id(source.dataset): source}, collate)
        self._source = source

    def fetch(self, indices: Sequence[Any], draws: TorchDraws) -> Any:
        """Compute one batch; see `Fetcher`."""
        samples = [self._source.sample(index, draws) for index in indices]
        return samples if self.collate is not None else torch.utils.data.default_collate(samples)


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, torch.Tensor):
        return isinstance(found, torch.Tensor) and found.dtype == expected.dtype and torch.equal(found, expected)
    if isinstance(expected, tuple):
        return type(found) is tuple and len(found) == len(expected) and all(map(_same, found, expected))
    return type(found) is type(expected) and found == expected


def check_samples(source: SsdSource) -> None:
    """Compare some samples computed here and by the dataset, with the same random numbers.

    Raises:
        NotRecognizedError: the samples differ, or the dataset cannot compute samples.
    """
    coco = source.dataset
    count = len(coco.img_keys)
    failure = ""
    was_made = False
    for trial in range(_TRIALS if count else 0):
        index = trial * count // _TRIALS
        states = RandomStates.current()
        random.seed(trial)
        torch.default_generator.manual_seed(trial)
        try:
            expected = coco[index]
        except Exception as error:  # if only this sample fails, both loaders raise its error
            failure = repr(error)
            continue
        finally:
            states.restore()
        found = source.sample(index, TorchDraws(torch.Generator().manual_seed(trial), random.Random(trial)))
        if not _same(found, expected):
            raise NotRecognizedError(
                f"sample {index} of {type(coco).__name__} differs from SSD's reference implementation",
                "The dataset's transforms have rules that dalify does not support.",
            )
        was_made = True
    if failure and not was_made:
        raise NotRecognizedError(f"samples cannot be computed: {failure}")


class SsdDataLoader(DataLoader):
    """A `DataLoader` that also supports COCO with the transforms of SSD's reference programs.

    Attributes:
        fallback_reason: why a subclass uses torch's loader; None if it does not.
    """

    fallback_reason: str | None = None
    _tried: tuple[Any, Any] = (None, None)

    def explain(self) -> LoaderReport:
        """Report the parts that dalify and torch compute; the first call compares some samples of both."""
        report = super().explain()
        if not is_ssd_dataset(self.dataset) or report.code == UNCHANGED:
            return report
        try:
            source = self._ssd_source()
        except NotRecognizedError as error:
            return replace(report, reason=error.reason.text, hint=error.reason.hint)
        names = " → ".join(source.plan.names)
        return LoaderReport("full", (f"{source.description}: {names} by dalify, boxes by the program's own encoder",))

    def _ssd_source(self) -> SsdSource:
        """Return the source for COCO with SSD's transforms; verified once for each dataset and transform.

        Raises:
            NotRecognizedError: something is not recognized, or results differ.
        """
        if not self._auto_collation or self.worker_init_fn is not None or (self.timeout and not self.num_workers):
            raise NotRecognizedError("batch_size is None, worker_init_fn is set, or timeout is set without workers")
        check_settings()
        dataset: Any = self.dataset
        source = SsdSource(dataset)
        tried_dataset, tried_transform = self._tried
        if tried_dataset is not dataset or tried_transform is not dataset.transform:
            check_samples(source)
            self._tried = dataset, dataset.transform
        return source

    def _get_iterator(self) -> Any:
        if not is_ssd_dataset(self.dataset) or self.fallback_reason is not None:
            return super()._get_iterator()
        fetcher = SsdFetcher(self._ssd_source(), None if collates_as_torch(self) else self.collate_fn)
        return ThreadIterator(self, fetcher) if self.num_workers else CallerIterator(self, fetcher)
