"""Read samples of several files from tar archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.data import DALIDataType
from dalify.formats.identity import file_identity
from dalify.formats.webdataset import Sample, Samples, samples_of
from dalify.registry import Spec, operator

_BEHAVIOURS = ("empty", "skip", "error")
_WIDEST_DTYPE = DALIDataType.BOOL


def _count(arguments: Mapping[str, Any]) -> int:
    if not arguments["ext"]:
        raise ArgumentValueError("ext is empty: there is nothing to read.", hint="For example ext=['jpg', 'cls'].")
    return len(arguments["ext"])


@operator(outputs=_count, reader=True)
def webdataset(
    *,
    paths: list[str],
    ext: list[str],
    case_sensitive_extensions: bool = True,
    dtypes: list[DALIDataType] | None = None,
    index_paths: list[str] | None = None,
    missing_component_behavior: str = "",
) -> tuple[Spec, ...]:
    """Read samples from WebDataset archives: tar files in which "a.jpg" and "a.cls" are one sample.

    A sample is a run of regular files whose paths are equal up to the first dot behind the last slash; what follows the
    dot is the extension. Files whose names begin with a dot are passed over (in DALI they split the sample around
    them, unless an index is given). Long names of GNU and pax archives are understood.

    ``shuffle_after_epoch`` shuffles the archives and leaves the order within each as it is; ``random_shuffle`` may be
    added and shuffles what the shard has got. With ``on_error="replace"``, a sample that cannot be read has an
    empty picture; of its other files, those that can be read are there.

    Args:
        paths: the archives.
        ext: extensions of each output, alternatives with ";" between them: ``["jpg;png", "cls"]``. Where several files
            of a sample match, the first one counts.
        case_sensitive_extensions: whether case counts.
        dtypes: element types of the outputs, one each; UINT8 by default.
        index_paths: index files, one per archive, as ``python -m dalify.tools.wds2idx`` and DALI's tool of this name
            write them; without them the archives are gone through when the pipeline is built.
        missing_component_behavior: what a sample without a file for an output means: ``empty``, an empty output (the
            default); ``skip``, no such sample; ``error``.

    Returns:
        one output per entry of `ext`: the contents of the file, ``[n]`` of its dtype, on the CPU.

    Raises:
        ReaderError: an archive or index that is missing or damaged; files that are no whole number of elements; a
            missing file with ``error``.
        ArgumentValueError: an unknown option, or another number of types than of outputs.

    Example:
        >>> encoded, label = fn.readers.webdataset(
        ...     paths=["train-0.tar", "train-1.tar"], ext=["jpg;png", "cls"], missing_component_behavior="error"
        ... )  # doctest: +SKIP
    """
    _behaviour(missing_component_behavior)
    return tuple(Spec(dtype, 1, "") for dtype in _types(dtypes, len(ext)))


def _types(dtypes: Sequence[DALIDataType] | None, count: int) -> Sequence[DALIDataType]:
    if dtypes is None:
        return [DALIDataType.UINT8] * count
    if len(dtypes) != count:
        raise ArgumentValueError(f"dtypes has {len(dtypes)} types for {count} outputs; there must be one for each.")
    for dtype in dtypes:
        if not 0 <= dtype <= _WIDEST_DTYPE:
            raise ArgumentValueError(f"{dtype} is no element type that a file can hold.")
    return dtypes


def _behaviour(text: str) -> str:
    found = text.lower() or "empty"
    if found not in _BEHAVIOURS:
        raise ArgumentValueError(option_error_text("missing_component_behavior", text, _BEHAVIOURS))
    return found


@webdataset.index
def _(
    paths: Sequence[str],
    ext: Sequence[str],
    case_sensitive_extensions: bool,
    dtypes: Sequence[DALIDataType] | None,
    index_paths: Sequence[str] | None,
    missing_component_behavior: str,
) -> Samples:
    return samples_of(
        paths,
        index_paths,
        ext,
        _types(dtypes, len(ext)),
        missing=_behaviour(missing_component_behavior),
        case_sensitive=case_sensitive_extensions,
    )


@webdataset.read
def _(sample: Sample) -> tuple[np.ndarray[Any, Any], ...]:
    return sample.read()


@webdataset.read_many
def _(samples: Samples, numbers: np.ndarray[Any, Any]) -> tuple[Any, ...] | None:
    return samples.read_many(numbers)


@webdataset.identity("dtypes")
def _(sample: Sample) -> tuple[str, str]:
    return file_identity(sample.samples.files.paths[sample.file], sample.samples.places[sample.number].tolist())


@webdataset.origin
def _(sample: Sample) -> str:
    return sample.origin


@webdataset.stand_in
def _(sample: Sample) -> tuple[np.ndarray[Any, Any], ...]:
    return sample.stand_in()
