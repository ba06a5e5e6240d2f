"""Read samples of several files from tar archives."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.data import DALIDataType
from dalify.formats.files.identity import file_identity
from dalify.formats.records.webdataset import Sample, Samples, samples_of
from dalify.registry import Spec, one_per_entry, reader, types_of_outputs

_BEHAVIORS = ("empty", "skip", "error")

_count = one_per_entry("ext", "['jpg', 'cls']")


@reader(outputs=_count)
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

    A sample consists of consecutive regular files whose paths are equal up to the first dot after the last slash; the
    rest is the extension. Files whose names start with a dot are ignored (in DALI they split the sample around them,
    unless there is an index). Long names of GNU and pax archives are supported.

    ``shuffle_after_epoch`` shuffles the archives but not the samples within an archive; ``random_shuffle`` additionally
    shuffles the samples of the shard. With ``on_error="replace"``, a sample that cannot be read has an empty image; its
    other files are kept if they can be read.

    Args:
        paths: the archives.
        ext: extensions of each output, with alternatives separated by ";": ``["jpg;png", "cls"]``. If several files of
            a sample match, the first one is used.
        case_sensitive_extensions: whether extensions are case-sensitive.
        dtypes: element types of the outputs, one each; by default UINT8.
        index_paths: index files, one per archive, created by ``python -m dalify.tools.wds2idx`` or DALI's tool of this
            name; by default the archives are scanned when the pipeline is built.
        missing_component_behavior: handling of a sample without a file for an output: ``empty``: an empty output (the
            default); ``skip``: skip the sample; ``error``: raise an error.

    Returns:
        one output per entry of `ext`: the contents of the file, ``[n]`` of its dtype, on the CPU.

    Raises:
        ReaderError: a missing or damaged archive or index; a file size that is not a multiple of the item size; a
            missing file with ``error``.
        ArgumentValueError: an unknown option, different numbers of types and outputs, or two outputs with the same
            extensions with ``skip`` or ``error``.

    Example:
        >>> encoded, label = fn.readers.webdataset(
        ...     paths=["train-0.tar", "train-1.tar"], ext=["jpg;png", "cls"], missing_component_behavior="error"
        ... )  # doctest: +SKIP
    """
    if _behavior(missing_component_behavior) != "empty":
        _check_distinct(ext, case_sensitive_extensions, missing_component_behavior)
    return tuple(Spec(dtype, 1, "") for dtype in types_of_outputs(dtypes, len(ext), ArgumentValueError))


def _behavior(text: str) -> str:
    found = text.lower() or "empty"
    if found not in _BEHAVIORS:
        raise ArgumentValueError(option_error_text("missing_component_behavior", text, _BEHAVIORS))
    return found


def _check_distinct(ext: Sequence[str], case_sensitive: bool, behavior: str) -> None:
    """Refuse outputs with the same extensions, of which DALI counts all but one as missing in every sample."""
    seen: dict[frozenset[str], str] = {}
    for name in ext:
        extensions = frozenset((name if case_sensitive else name.lower()).split(";"))
        if extensions in seen:
            raise ArgumentValueError(
                f"ext must not have two outputs with the same extensions with missing_component_behavior={behavior!r}; "
                f"got {seen[extensions]!r} and {name!r}.",
                hint="Name the extension once, and use the output twice.",
            )
        seen[extensions] = name


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
        types_of_outputs(dtypes, len(ext), ArgumentValueError),
        missing=_behavior(missing_component_behavior),
        case_sensitive=case_sensitive_extensions,
    )


webdataset.read(Sample.read)
webdataset.read_many(Samples.read_many)
webdataset.source_info(Sample.source_info)
webdataset.substitute(Sample.substitute)


@webdataset.identity("dtypes")
def _(sample: Sample) -> tuple[str, str]:
    return file_identity(sample.samples.files.paths[sample.file], sample.samples.places[sample.number].tolist())
