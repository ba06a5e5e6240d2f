"""Declares and decodes the features of ``tf.Example`` records.

One compiled pass over a record finds the requested features; only these are decoded. Source: example.proto and
feature.proto of TensorFlow, which is not required.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError, WrongObjectError
from dalify.base.small_arrays import zeros
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.data.batch import Batch
from dalify.formats.files.pieces import samples_in
from dalify.formats.records.protobuf import BYTES, fill_floats, fill_integers, floats, integers, next_field

# Kinds of lists, by the number of their field in Feature.
_STRING, _FLOAT, _INTEGER = 1, 2, 3
_NAMES = {_STRING: "strings", _FLOAT: "floats", _INTEGER: "integers"}
_KINDS = {DALIDataType.UINT8: _STRING, DALIDataType.FLOAT: _FLOAT, DALIDataType.INT64: _INTEGER}


class Feature(NamedTuple):
    """One requested feature.

    Attributes:
        dtype: dtype of the output: UINT8 for strings, INT64 or FLOAT.
        shape: shape of the output; for variable length, without the first extent.
        has_any_length: whether the first extent is determined by the data.
        default_value: not used, because a missing feature is an empty array, as in DALI.
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
    """The type of the argument ``features``: a dictionary of Feature by name; plain tuples in the graph."""

    @classmethod
    def from_user(cls, value: Any) -> tuple[Any, ...]:
        """Return ``((name, dtype, shape, has_any_length), ...)``, from a dictionary of features or from such tuples.

        Raises:
            WrongObjectError: the value is not a dictionary of features.
            ArgumentValueError: there are no features, or one cannot be read.
        """
        if isinstance(value, tuple):  # from a serialized graph
            value = features_of(value)
        if not isinstance(value, Mapping):
            raise WrongObjectError(
                f"features must be a dictionary; got {value!r}.",
                hint='Example: {"image": tfrecord.FixedLenFeature([], tfrecord.string, "")}.',
            )
        if not value:
            raise ArgumentValueError("features is empty: there is nothing to read.")
        for name, feature in value.items():
            if not isinstance(name, str) or not isinstance(feature, Feature):
                raise ArgumentTypeError(
                    f"features must map strings to tfrecord.FixedLenFeature or VarLenFeature; got "
                    f"{name!r}: {feature!r}."
                )
        return tuple((name, feature.dtype, feature.shape, feature.has_any_length) for name, feature in value.items())


def features_of(features: Any) -> dict[str, Feature]:
    """Convert the tuples of ``Features.from_user`` back to features by name."""
    return {name: Feature(dtype, tuple(shape), bool(has_any_length)) for name, dtype, shape, has_any_length in features}


@njit(nogil=True, cache=True)
def _entry(data: Any, place: int, stop: int) -> tuple[bool, int, int, int, int]:
    """Return whether an entry of a map is valid, start and end of its key, and start and end of its value."""
    key = key_end = value = value_end = place
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            return False, key, key, value, value
        if wire == BYTES and number == 1:
            key, key_end = begin, place
        elif wire == BYTES and number == 2:
            value, value_end = begin, place
    return True, key, key_end, value, value_end


@njit(nogil=True, cache=True)
def _is_name(data: Any, key: int, key_end: int, names: Any, name: int, name_end: int) -> bool:
    if key_end - key != name_end - name:
        return False
    same = True
    for i in range(name_end - name):
        same &= names[name + i] == data[key + i]
    return same


@njit(nogil=True, cache=True)
def _find_list(data: Any, place: int, stop: int, found: Any, feature: int) -> bool:
    """Find kind, start and end of the list of values of a feature, ``found[feature]``; return False if damaged."""
    found[feature, 0] = 0
    while place < stop:
        kind, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            return False
        if wire == BYTES and 1 <= kind <= 3:
            found[feature, 0], found[feature, 1], found[feature, 2] = kind, begin, place
    return True


@njit(nogil=True, cache=True)
def _find(data: Any, start: Any, stop: Any, names: Any, name_ends: Any, found: Any) -> bool:
    """Find kind, start and end of the requested features, ``found[F, 3]``; return False if damaged.

    If a name occurs twice, the last value is used, as the format specifies.
    """
    place = start
    while place < stop:
        number, wire, entry_end, place = next_field(data, place, stop)
        if place < 0:
            return False
        if number != 1 or wire != BYTES:
            continue
        while entry_end < place:  # entries of the map
            number, wire, entry, entry_end = next_field(data, entry_end, place)
            if entry_end < 0:
                return False
            if number != 1 or wire != BYTES:
                continue
            is_valid, key, key_end, value, value_end = _entry(data, entry, entry_end)
            if not is_valid:
                return False
            name = 0
            for feature in range(name_ends.size):
                is_wanted = _is_name(data, key, key_end, names, name, name_ends[feature])
                if is_wanted and not _find_list(data, value, value_end, found, feature):
                    return False
                name = name_ends[feature]
    return True


@njit(nogil=True, cache=True)
def _find_all(
    data: Any, starts: Any, stops: Any, names: Any, name_ends: Any, kinds: Any, found: Any, are_all: Any
) -> bool:
    """Find the requested features of many Examples, ``found[N, F, 3]``, initially zeros.

    Start and end of a string are those of its bytes. ``are_all[F]`` is whether all Examples have the feature with the
    kind in ``kinds[F]``. Return False if an Example is damaged, or a list has several strings.
    """
    are_all[:] = True
    for sample in range(starts.size):
        if not _find(data, starts[sample], stops[sample], names, name_ends, found[sample]):
            return False
        for feature in range(name_ends.size):
            are_all[feature] &= found[sample, feature, 0] == kinds[feature]
            if found[sample, feature, 0] == _STRING:
                end = found[sample, feature, 2]
                number, wire, begin, after = next_field(data, found[sample, feature, 1], end)
                if after != end or number != 1 or wire != BYTES:
                    return False
                found[sample, feature, 1] = begin
    return True


class ExampleParser:
    """Decodes the requested features of records.

    Args:
        features: features by name, in the order of the outputs.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._features = [(name, feature, _KINDS[feature.dtype]) for name, feature in features.items()]
        self._kinds = np.array([kind for _, _, kind in self._features], np.int64)
        encoded = [name.encode() for name in features]
        self._names = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        self._name_ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)

    def __call__(self, data: NDArray[np.uint8]) -> tuple[NDArray[Any], ...]:
        """Return the features of one serialized Example, one array each; strings are views of ``data``.

        Raises:
            ReaderError: the record is damaged, or a feature has another type or size than declared.
        """
        found = np.zeros((len(self._features), 3), np.int64)
        if not _find(data, 0, data.size, self._names, self._name_ends, found):
            raise ReaderError("the record is not a valid tf.Example.")
        return tuple(
            _decoded(data, name, feature, wanted, *place)
            for (name, feature, wanted), place in zip(self._features, found.tolist(), strict=True)
        )

    def empty(self) -> tuple[NDArray[Any], ...]:
        """Return placeholders for a record that cannot be read: empty strings and lists, and zeros."""
        return tuple(
            _absent(feature)
            if feature.dtype == DALIDataType.UINT8 or feature.has_any_length
            else np.zeros(feature.shape, feature.dtype.numpy)
            for _, feature, _ in self._features
        )

    def columns(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> tuple[Any, ...] | None:
        """Return the features of many Examples, each an array ``[N, ...]``, a Batch or a list of N arrays.

        None if ``__call__`` must be used for each Example, or raises an error.

        Args:
            data: the bytes of all Examples.
            starts: starts of the Examples, ``[N]``.
            stops: ends of the Examples.
        """
        found = zeros((len(starts), len(self._features), 3), np.int64)
        are_all = np.empty(len(self._features), np.bool_)
        if not _find_all(data, starts, stops, self._names, self._name_ends, self._kinds, found, are_all):
            return None
        try:
            return tuple(
                [
                    _decoded_all(data, *feature, found[:, number], is_everywhere)
                    for number, (feature, is_everywhere) in enumerate(
                        zip(self._features, are_all.tolist(), strict=True)
                    )
                ]
            )
        except ReaderError:
            return None


def _decoded_all(
    data: NDArray[np.uint8],
    name: str,
    feature: Feature,
    wanted: int,
    places: NDArray[np.int64],
    is_everywhere: bool,
) -> NDArray[Any] | Batch | list[NDArray[Any]]:
    """Return one feature of many Examples from its kinds, starts and ends, ``[N, 3]``.

    Args:
        data: the bytes of the Examples.
        name: name of the feature.
        feature: its declaration.
        wanted: declared kind.
        places: kinds, starts and ends, ``[N, 3]``.
        is_everywhere: whether all kinds are the declared one.
    """
    if is_everywhere:
        if wanted == _STRING:
            return samples_in(data, places[:, 1], places[:, 2])
        values = np.empty((len(places), *feature.shape), feature.dtype.numpy)
        fill = fill_integers if wanted == _INTEGER else fill_floats
        if not feature.has_any_length and values.size and fill(data, places, values.reshape(len(places), -1)):
            return values
    if wanted == _STRING:
        if (places[:, 0] > _STRING).any():
            raise ReaderError(f"the feature {name!r} is not a string.")
        return [data[start:stop] for _, start, stop in places.tolist()]  # 0:0, an empty string, if it is absent
    return [_decoded(data, name, feature, wanted, *place) for place in places.tolist()]


def _decoded(
    data: NDArray[np.uint8], name: str, feature: Feature, wanted: int, kind: int, start: int, stop: int
) -> NDArray[Any]:
    if kind == 0:
        return _absent(feature)
    if kind != wanted:
        raise ReaderError(f"the feature {name!r} has {_NAMES[kind]}, not {_NAMES[wanted]} as declared.")
    if kind == _STRING:
        return _text(data, name, start, stop)
    values = (integers if kind == _INTEGER else floats)(data, start, stop, 1)
    shape = feature.shape
    count = math.prod(shape)
    if feature.has_any_length:
        if not shape:
            return values
        if count == 0 or values.size % count:
            raise ReaderError(
                f"the {counted(values.size, 'value')} of the feature {name!r} are not divisible into shape {shape}."
            )
        return values.reshape(-1, *shape)
    if values.size == 0 and count != 0:  # an empty list is equivalent to an absent one
        return _absent(feature)
    if values.size != count:
        raise ReaderError(
            f"the feature {name!r} has {counted(values.size, 'value')}; the declared shape {list(shape)} needs "
            f"{count}.",
            hint="Use tfrecord.VarLenFeature for lists of variable length.",
        )
    return values.reshape(shape)


def _absent(feature: Feature) -> NDArray[Any]:
    """Return an empty array with the same number of dimensions; a scalar cannot be empty."""
    if feature.dtype == DALIDataType.UINT8:
        return np.empty(0, np.uint8)
    if feature.has_any_length:
        return np.empty((0, *feature.shape), feature.dtype.numpy)
    if not feature.shape:
        raise ReaderError(
            "a record lacks a feature that is declared as a scalar, which cannot be empty.",
            hint="Declare it as tfrecord.FixedLenFeature([1], ...) or VarLenFeature, for which it is an empty array.",
        )
    return np.empty((0, *feature.shape[1:]), feature.dtype.numpy)


def _text(data: NDArray[np.uint8], name: str, start: int, stop: int) -> NDArray[np.uint8]:
    text: NDArray[np.uint8] | None = None
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            raise ReaderError(f"the feature {name!r} is damaged: a string is truncated.")
        if number != 1 or wire != BYTES:
            continue
        if text is not None:
            raise ReaderError(f"the feature {name!r} has several strings; only one is supported.")
        text = data[begin:place]
    return np.empty(0, np.uint8) if text is None else text
