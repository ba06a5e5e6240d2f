"""``tf.Example``: which features are wanted, and how they are found in the bytes of a record.

Alone because the declarations (``dalify.tfrecord.FixedLenFeature`` …) and the search belong together, and TensorFlow is
no dependency. Source: example.proto and feature.proto of TensorFlow. One compiled pass over a record notes where the
wanted features lie; only these are decoded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError
from dalify.data import DALIDataType
from dalify.formats.protobuf import BYTES, fill_floats, fill_integers, floats, integers, next_field

__all__ = ["ExampleParser", "Feature", "Features", "declared"]

# Kinds of lists, by the number of their field in Feature.
_TEXT, _FLOAT, _INTEGER = 1, 2, 3
_NAMES = {_TEXT: "texts", _FLOAT: "floats", _INTEGER: "integers"}
_KINDS = {DALIDataType.UINT8: _TEXT, DALIDataType.FLOAT: _FLOAT, DALIDataType.INT64: _INTEGER}


class Feature(NamedTuple):
    """One wanted feature.

    Attributes:
        dtype: of the output: UINT8 for texts, INT64 or FLOAT.
        shape: of the output; of a feature of any length, what follows the first extent.
        has_any_length: the first extent follows from the data.
        default_value: kept as it was given; a feature that a record lacks is an empty array, as in DALI.
    """

    dtype: DALIDataType
    shape: tuple[int, ...]
    has_any_length: bool
    default_value: Any = None

    @property
    def ndim(self) -> int:
        """Number of dimensions of the output."""
        if self.dtype == DALIDataType.UINT8:
            return 1
        return len(self.shape) + self.has_any_length


class Features:
    """The type of the argument ``features``: a dictionary from names to Feature; in the graph, plain tuples."""

    @classmethod
    def from_user(cls, value: Any) -> tuple[Any, ...]:
        """Return ``((name, dtype, shape, has_any_length), ...)``, of a dictionary of features or of such tuples.

        Raises:
            ArgumentTypeError: no dictionary of features.
            ArgumentValueError: no features, or one that cannot be read.
        """
        if isinstance(value, tuple):  # of a graph that was written down
            value = declared(value)
        if not isinstance(value, Mapping):
            raise ArgumentTypeError(
                f"features must be a dictionary; got {value!r}.",
                hint='For example {"image": tfrecord.FixedLenFeature([], tfrecord.string, "")}.',
            )
        if not value:
            raise ArgumentValueError("features is empty: there is nothing to read.")
        for name, feature in value.items():
            if not isinstance(name, str) or not isinstance(feature, Feature):
                raise ArgumentTypeError(
                    f"features must map texts to tfrecord.FixedLenFeature or VarLenFeature; got {name!r}: {feature!r}."
                )
        return tuple((name, feature.dtype, feature.shape, feature.has_any_length) for name, feature in value.items())


def declared(features: Any) -> dict[str, Feature]:
    """Return the features that ``Features.from_user`` made plain, by name."""
    return {name: Feature(dtype, tuple(shape), bool(has_any_length)) for name, dtype, shape, has_any_length in features}


@njit(nogil=True, cache=True)
def _find(data: Any, start: Any, stop: Any, names: Any, name_ends: Any, found: Any) -> bool:
    """Note kind, begin and end of the wanted features of an Example in ``found[F, 3]``; False where it is damaged.

    A name that occurs twice counts with its last value, as the format wants.
    """
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            return False
        if number != 1 or wire != BYTES:
            continue
        entry_end = begin
        while entry_end < place:  # entries of the map
            entry_number, entry_wire, entry, entry_end = next_field(data, entry_end, place)
            if entry_end < 0:
                return False
            if entry_number != 1 or entry_wire != BYTES:
                continue
            key = key_end = value = value_end = entry
            part_end = entry
            while part_end < entry_end:
                part_number, part_wire, part, part_end = next_field(data, part_end, entry_end)
                if part_end < 0:
                    return False
                if part_wire == BYTES and part_number == 1:
                    key, key_end = part, part_end
                elif part_wire == BYTES and part_number == 2:
                    value, value_end = part, part_end
            name_begin = 0
            for wanted in range(name_ends.size):
                size = name_ends[wanted] - name_begin
                same = size == key_end - key
                if same:
                    for i in range(size):
                        if names[name_begin + i] != data[key + i]:
                            same = False
                            break
                name_begin = name_ends[wanted]
                if not same:
                    continue
                found[wanted, 0] = 0
                list_end = value
                while list_end < value_end:
                    kind, list_wire, begin_of_list, list_end = next_field(data, list_end, value_end)
                    if list_end < 0:
                        return False
                    if list_wire == BYTES and 1 <= kind <= 3:
                        found[wanted, 0] = kind
                        found[wanted, 1] = begin_of_list
                        found[wanted, 2] = list_end
    return True


@njit(nogil=True, cache=True)
def _find_all(data: Any, starts: Any, stops: Any, names: Any, name_ends: Any, found: Any) -> bool:
    """Note kind, begin and end of the wanted features of many Examples in ``found[N, F, 3]``, all zeros before.

    Of a text, begin and end of its bytes, where it is the only one in its list. False where an Example is damaged.
    """
    for sample in range(starts.size):
        if not _find(data, starts[sample], stops[sample], names, name_ends, found[sample]):
            return False
        for feature in range(name_ends.size):
            if found[sample, feature, 0] == _TEXT:
                end = found[sample, feature, 2]
                number, wire, begin, after = next_field(data, found[sample, feature, 1], end)
                if after != end or number != 1 or wire != BYTES:
                    return False
                found[sample, feature, 1] = begin
    return True


class ExampleParser:
    """Decodes the wanted features of records.

    Args:
        features: by name, in the order of the outputs.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._features = [(name, feature, _KINDS[feature.dtype]) for name, feature in features.items()]
        encoded = [name.encode() for name in features]
        self._names = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        self._name_ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)

    def __call__(self, data: NDArray[np.uint8]) -> tuple[NDArray[Any], ...]:
        """Return the features of one serialised Example, one array each; texts are views of ``data``.

        Raises:
            ReaderError: the record is damaged, or a feature is of another type or size than declared.
        """
        found = np.zeros((len(self._features), 3), np.int64)
        if not _find(data, 0, data.size, self._names, self._name_ends, found):
            raise ReaderError("the record holds no tf.Example, or a damaged one.")
        return tuple(
            _decoded(data, name, feature, wanted, *place)
            for (name, feature, wanted), place in zip(self._features, found.tolist(), strict=True)
        )

    def empty(self) -> tuple[NDArray[Any], ...]:
        """Return what takes the place of a record that cannot be read: empty texts and lists, and zeros."""
        return tuple(
            _absent(feature)
            if feature.dtype == DALIDataType.UINT8 or feature.has_any_length
            else np.zeros(feature.shape, feature.dtype.numpy)
            for _, feature, _ in self._features
        )

    def columns(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> tuple[Any, ...] | None:
        """Return the features of many Examples, an array ``[N, ...]`` or a list of N arrays each.

        None where one of them is not as most are: then ``__call__`` knows what to do, or what is wrong.

        Args:
            data: where they lie.
            starts: of the Examples, ``[N]``.
            stops: their ends.
        """
        found = np.zeros((len(starts), len(self._features), 3), np.int64)
        if not _find_all(data, starts, stops, self._names, self._name_ends, found):
            return None
        try:
            return tuple(
                _decoded_all(data, name, feature, kind, found[:, number])
                for number, (name, feature, kind) in enumerate(self._features)
            )
        except ReaderError:
            return None


def _decoded_all(
    data: NDArray[np.uint8], name: str, feature: Feature, wanted: int, places: NDArray[np.int64]
) -> NDArray[Any] | list[NDArray[Any]]:
    """Return one feature of many Examples from its kinds, begins and ends, ``[N, 3]``."""
    if (places[:, 0] == wanted).all():
        if wanted == _TEXT:
            return [data[start:stop] for _, start, stop in places.tolist()]
        values = np.empty((len(places), *feature.shape), feature.dtype.numpy)
        fill = fill_integers if wanted == _INTEGER else fill_floats
        if not feature.has_any_length and values.size and fill(data, places, values.reshape(len(places), -1)):
            return values
    if wanted == _TEXT:
        if (places[:, 0] > _TEXT).any():
            raise ReaderError(f"the feature {name!r} is no text.")
        return [data[start:stop] for _, start, stop in places.tolist()]  # nothing from 0 to 0 where there is none
    return [_decoded(data, name, feature, wanted, *place) for place in places.tolist()]


def _decoded(
    data: NDArray[np.uint8], name: str, feature: Feature, wanted: int, kind: int, start: int, stop: int
) -> NDArray[Any]:
    if kind == 0:
        return _absent(feature)
    if kind != wanted:
        raise ReaderError(f"the feature {name!r} has {_NAMES[kind]}, not {_NAMES[wanted]} as declared.")
    if kind == _TEXT:
        return _text(data, name, start, stop)
    values = (integers if kind == _INTEGER else floats)(data, start, stop, 1)
    shape = feature.shape
    count = math.prod(shape)
    if feature.has_any_length:
        if not shape:
            return values
        if count == 0 or values.size % count:
            raise ReaderError(f"the {values.size} values of the feature {name!r} do not divide into shape {shape}.")
        return values.reshape(-1, *shape)
    if values.size == 0 and count != 0:  # an empty list says no more than an absent one
        return _absent(feature)
    if values.size != count:
        raise ReaderError(
            f"the feature {name!r} has {values.size} values; the declared shape {list(shape)} takes {count}.",
            hint="Write tfrecord.VarLenFeature for lists of any length.",
        )
    return values.reshape(shape)


def _absent(feature: Feature) -> NDArray[Any]:
    """Return an empty array, of as many dimensions as the others; a single number has none to be empty along."""
    if feature.dtype == DALIDataType.UINT8:
        return np.empty(0, np.uint8)
    if feature.has_any_length:
        return np.empty((0, *feature.shape), feature.dtype.numpy)
    if not feature.shape:
        raise ReaderError(
            "a record lacks a feature that is declared as a single number, which cannot be empty.",
            hint="Declare it as tfrecord.FixedLenFeature([1], ...) or as VarLenFeature: it is an empty array then.",
        )
    return np.empty((0, *feature.shape[1:]), feature.dtype.numpy)


def _text(data: NDArray[np.uint8], name: str, start: int, stop: int) -> NDArray[np.uint8]:
    text: NDArray[np.uint8] | None = None
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            raise ReaderError(f"the feature {name!r} is damaged: a text ends in the middle.")
        if number != 1 or wire != BYTES:
            continue
        if text is not None:
            raise ReaderError(f"the feature {name!r} has several texts; only one can be an output.")
        text = data[begin:place]
    return np.empty(0, np.uint8) if text is None else text
