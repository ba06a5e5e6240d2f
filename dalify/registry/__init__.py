"""What an operator is, and where each one is found. Nothing here knows a single operator.

How a kernel is called
    A *group* is N samples whose inputs have one shape (and whose shaping arguments are equal). A filling kernel gets
    ``kernel(out[, out2 ...], x[, y ...], *, names)``: arrays ``[N, ...]``, C-contiguous in each sample. It fills
    ``out`` completely. An allocating kernel gets no ``out`` and returns its results: an array ``[N, ...]`` or a list
    of N arrays (a tuple of these for several outputs). An optional input that was not given is None. A batchwise
    kernel gets Batches and returns Batches, arrays or lists.

    A kernel attached by ``cpu_samples`` gets all samples of a chunk in one call, whatever their shapes: ``out`` and
    ``x`` are `Samples` (addresses, shapes), which compiled loops go through by themselves. ``spec`` and ``out_spec``
    have no shape. ``prepare`` returns ``out_shapes`` as int64 ``[N, ndim]``; where it looks at shapes and arguments
    only, it is attached by ``geometry``. New image and audio operators use this; groups remain for those that have not
    moved yet, and for the GPU.

    A *listed* operator (files to be decoded) looks at each sample by itself, so that stacking them would only copy. Its
    kernel gets all samples of a chunk in one call, for each input a list of contiguous arrays, and ``out`` is
    ``[N, ...]`` or, where shapes differ, a list of N arrays, some perhaps without elements. Specs of inputs have no
    shape.

    A *ragged* operator (boxes, points, labels: each sample has another number of them) gets all samples of a chunk in
    one call: ``x`` is a ``Rows``, the samples one after the other along their first axis, ``x.values[total, ...]``, and
    ``x.starts[N + 1]``. It fills ``out.values`` or returns, allocating, ``Rows`` in memory of their own, or arrays
    ``[N, ...]``. Per-sample arguments are ``[N]`` as ever; ``x.sample_of_row()`` says which sample a row belongs to. A
    uniform chunk looks the same, so there is one kernel for both. Only the first extents may differ within a call: the
    executor makes one for each run of samples whose other extents agree. ``spec`` is that of the first sample. There
    is no ``prepare``, and no argument is Shaping.

    ``names`` are keyword-only and each kernel gets those that it lists:
    static parameters as normalised (int, float, bool, str, enum, tuple, None);
    per-sample ones as arrays: ``[N]`` of int32, float32 or bool, ``[N, k]`` for lists (None when not given);
    what ``prepare`` returned; and of the executor:
    ``spec``/``specs`` (of the first input / all inputs, with shape), ``out_spec``/``out_specs``,
    ``draws`` (random operators: ``draws.uniform(count) -> float64[N, count]`` in [0, 1), ``draws.bits(count) ->
    uint32[N, count]``), ``count`` (N); batchwise ones: ``memory(start, count, shape) -> [count, *shape]`` to be filled
    with the samples from ``start`` on of the only output, which saves a copy of them.
    Operators without inputs get ``count`` and fill ``out[N, ...]``.

How a reader is called
    ``index(*, names)`` once, when the pipeline is built; it returns a sequence of entries. ``read(entry, *, names)``
    for each sample returns a tuple of arrays. Readers of many small records also have ``read_many(index, numbers, *,
    names)``, for a chunk in one call: an array ``[N, ...]`` or a list of N arrays per output, or None where a sample is
    not as most are; then ``read`` is called for each, and names the one that is bad. ``origin(entry)`` is asked only
    when somebody wants to know. ``stand_in(entry, *, names)`` gives what takes the place of a bad sample; None: zeros
    like those of a good one.
    An index may offer ``is_remote``, ``labels``, ``sources`` (for samplers), ``blocks`` (entries read together) and
    ``file_sizes`` (entries in each file of a container: ``shuffle_after_epoch`` shuffles the files).

How a rule is called
    ``rule(spec, ..., name=value)``: all parameters of the signature, normalised; a per-sample argument given as a
    node is VARIES, and so is a shaping one while the graph is built; when the graph runs, a shaping argument is the
    value of the sample. ``spec.shape`` is None while the graph is built. While dtype, ndim or layout of an input is
    not known (data from outside), the rule is not called at build.
"""

from dalify.data.spec import Spec
from dalify.registry.operator import COMMON_PARAMETERS, READER_PARAMETERS, Input, Kernel, Operator, operator
from dalify.registry.parameters import NO_DEFAULT, VARIES, VARIES_BY_FRAME, Parameter, PerFrame, PerSample, Shaping

__all__ = [
    "COMMON_PARAMETERS",
    "NO_DEFAULT",
    "READER_PARAMETERS",
    "VARIES",
    "VARIES_BY_FRAME",
    "Input",
    "Kernel",
    "Operator",
    "Parameter",
    "PerFrame",
    "PerSample",
    "Shaping",
    "Spec",
    "operator",
]
