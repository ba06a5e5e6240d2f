"""The operators that produce data: readers, and sources that the program supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Unpack

from dalify.base.errors import ArgumentValueError
from dalify.data.entries import Entries
from dalify.data.origin import Origin
from dalify.data.spec import Spec
from dalify.registry.operator import Operator, OperatorFunction, OperatorOptions, declaration_of
from dalify.registry.parameter_group import packing
from dalify.registry.parameters import Parameter, parameter_of

# The arguments that all readers have in addition to their own.
READER_PARAMETERS: dict[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        parameter_of("random_shuffle", bool, False),
        parameter_of("initial_fill", int, 1024),
        parameter_of("num_shards", int, 1),
        parameter_of("shard_id", int, 0),
        parameter_of("stick_to_shard", bool, False),
        parameter_of("shuffle_after_epoch", bool, False),
        parameter_of("shuffle_after_epoch_seed", int, None),
        parameter_of("pad_last_batch", bool, False),
        parameter_of("prefetch_queue_depth", int, 1),
        parameter_of("read_ahead", bool, False),
        parameter_of("tensor_init_bytes", int, 1048576),
        parameter_of("dont_use_mmap", bool, False),
        parameter_of("lazy_init", bool, False),
        parameter_of("skip_cached_images", bool, False),
        parameter_of("use_o_direct", bool, False),
        parameter_of("on_error", str, None),
        parameter_of("shard", str, None),
        parameter_of("sampler", object, None),
    )
}


class Source(Operator):
    """An operator that produces data."""


class EntryIdentity(NamedTuple):
    """How a reader identifies its entries; see ``Reader.identity``."""

    function: Callable[[Any], tuple[str, str]]
    names: tuple[str, ...]


class Reader(Source):
    """An operator that reads the entries of an index. It takes the common arguments of readers.

    Attributes:
        index_function: see ``index``.
        read_function: see ``read``.
        read_many_function: see ``read_many``.
        arrange_function: see ``arrange``.
        origin_function: see ``origin``.
        source_info_function: see ``source_info``.
        entry_identity: see ``identity``.
        substitute_function: see ``substitute``.
    """

    index_function: Callable[..., Entries[Any]]
    read_function: OperatorFunction
    read_many_function: OperatorFunction | None = None
    arrange_function: Callable[[list[Any], Mapping[str, Any]], Any] | None = None
    origin_function: Callable[[Any], str] = attrgetter("origin")
    source_info_function: Callable[[Any, int], str] | None = None
    entry_identity: EntryIdentity | None = None
    substitute_function: OperatorFunction | None = None

    def __init__(self, rule: Callable[..., Any], **options: Unpack[OperatorOptions]) -> None:
        super().__init__(rule, READER_PARAMETERS, **options)

    @property
    def takes_seed(self) -> bool:
        """Whether it has a seed: always, for shuffling."""
        return True

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that users may specify."""
        return ("cpu",)

    def index(self, function: Callable[..., Entries[Any]]) -> Callable[..., Entries[Any]]:
        """Attach the index function: from the arguments to the entries."""
        self.index_function = packing(function, self.groups)
        return function

    def read(self, function: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        """Attach the read function: from one entry of the index to a tuple of arrays, one per output.

        Its keyword-only parameters receive the arguments of these names: normalized constants, and per-sample arguments
        as the value of the sample: an array ``[k]`` for lists, and None if not specified.
        """
        self.read_function = OperatorFunction(function, self.groups)
        return function

    def read_many(self, function: Callable[..., tuple[Any, ...] | None]) -> Callable[..., tuple[Any, ...] | None]:
        """Attach a fast path for the entries of a chunk: ``read_many(index, numbers, *, names)``.

        It receives the result of ``index``, the entry numbers, int64 ``[N]``, and arguments by name like ``read``. For
        each output, it returns the same as N calls of ``read``: an array ``[N, ...]``, a `Batch` on the CPU or a list
        of N arrays. Samples do not overlap. It never raises. If a sample needs special handling, it returns None:
        ``read`` is then called for each entry and reports the failing one. It is not called if an argument varies per
        sample, or for remote files.
        """
        self.read_many_function = OperatorFunction(function, self.groups)
        return function

    def arrange(self, function: Callable[[list[Any], Mapping[str, Any]], Any]) -> Callable[..., Any]:
        """Attach a function that arranges the output nodes for the user, given the nodes and the arguments."""
        self.arrange_function = function
        return function

    def origin(self, function: Callable[[Any], str]) -> Callable[[Any], str]:
        """Attach the function that returns an entry's origin, its file name or key; by default ``entry.origin``."""
        self.origin_function = function
        return function

    def source_info(self, function: Callable[[Any, int], str]) -> Callable[[Any, int], str]:
        """Attach the function that returns DALI's ``source_info`` of an output, from an entry and the output's index.

        By default all outputs have the source info of the origin.
        """
        self.source_info_function = function
        return function

    def origin_of(self, entry: Any, output: int) -> str:
        """Return the origin of an entry, with the ``source_info`` of an output."""
        found = self.origin_function(entry)
        info = self.source_info_function
        return found if info is None else Origin(found, info(entry, output))

    def identity(self, *names: str) -> Callable[[Callable[[Any], tuple[str, str]]], Callable[[Any], tuple[str, str]]]:
        """Attach the function that identifies an entry, as a key for caches.

        It receives an entry and returns two strings: a key for the location of the data, the same in all processes and
        for all shards, and a state that changes when the data changes. It may raise OSError if the data does not exist.

        Args:
            names: arguments of ``index`` that affect the data of an entry but are not part of the key. Arguments of
                ``read`` are always included. For a file name, size and modification time are included.
        """

        def attach(function: Callable[[Any], tuple[str, str]]) -> Callable[[Any], tuple[str, str]]:
            self.entry_identity = EntryIdentity(function, names)
            return function

        return attach

    def substitute(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the function that returns a placeholder for a bad sample, for ``on_error="replace"``.

        It receives an entry of the index and constant arguments by name, and returns a tuple of arrays like ``read``.
        It never raises. None stands for zeros shaped like a readable sample, which is also the default of readers
        without this function.
        """
        self.substitute_function = OperatorFunction(function, self.groups)
        return function

    def apply_rule(self, specs: Sequence[Spec | None], arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
        """Return the specs of the outputs; see `Operator.apply_rule`."""
        _check_options(arguments)
        return super().apply_rule(specs, arguments)


class FedSource(Source):
    """An operator whose data the program supplies, with a callback or ``feed_input``.

    Attributes:
        feed_function: see ``feed``; None if the data of the program are used unchanged.
    """

    feed_function: Callable[..., Sequence[Callable[[], Sequence[Any]]]] | None = None

    def __init__(self, rule: Callable[..., Any], **options: Unpack[OperatorOptions]) -> None:
        super().__init__(rule, **options)

    def feed(self, function: Callable[..., Sequence[Callable[[], Sequence[Any]]]]) -> Callable[..., Any]:
        """Attach the function for ``pipe.feed_input(name, data)``.

        It receives the list of fed samples, ``batch_size``, and the constant arguments by name, and returns one
        function per iteration of the data. They are called in order, when the iterations start; each returns, for each
        output, an array ``[N, ...]`` or a list of N arrays.
        """
        self.feed_function = function
        return function


reader = declaration_of(Reader)
"""Declare a reader."""

fed_source = declaration_of(FedSource)
"""Declare a source that the program feeds."""


def _check_options(arguments: Mapping[str, Any]) -> None:
    """Refuse the values that DALI refuses, although these options have no effect in dalify.

    Raises:
        ArgumentValueError: `prefetch_queue_depth` is less than 1, or `use_o_direct` is used without `dont_use_mmap`.
    """
    if arguments["prefetch_queue_depth"] < 1:
        raise ArgumentValueError(f"prefetch_queue_depth must be at least 1; got {arguments['prefetch_queue_depth']}.")
    if arguments["use_o_direct"] and not arguments["dont_use_mmap"]:
        raise ArgumentValueError(
            "use_o_direct requires dont_use_mmap=True.",
            hint="Omit use_o_direct: it has no effect in dalify.",
        )
