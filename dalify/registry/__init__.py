"""The definition of operators and their lookup by name, independent of individual operators.

The kinds of operators
    ``@operator`` declares an operator with kernels (`KernelOperator`), ``@reader`` one that reads the entries of an
    index (`Reader`), ``@fed_source`` one whose data the program supplies (`FedSource`), and ``@structural`` one that
    the executor implements: constants, copies, splits, merges, caches (`Structural`). Their options are those of
    `OperatorOptions` and those of their class. Each kind has its own decorators, which attach functions.

How a kernel is called
    The decorator that attaches a kernel (``cpu_samples``, ``gpu_samples``, ``cpu_rows``, ``view`` …) determines the
    form in which the kernel gets samples (`Form`). A filling kernel is called as
    ``kernel(out[, out2 ...], x[, y ...], *, names)`` and fills ``out`` completely. An allocating
    kernel, such as one attached by ``cpu_new_samples`` or ``cpu_new_rows``, has no ``out`` and returns its results: an
    array ``[N, ...]`` or a list of N arrays (a tuple of these for several outputs). A missing optional input is None.

    A kernel attached by ``cpu_samples`` receives all samples of a chunk in one call, with any shapes: ``out`` and ``x``
    are `Samples` (addresses, shapes), which compiled loops iterate over. ``spec`` and ``out_spec`` have no shape.
    A ``prepare`` function returns ``out_shapes`` as int64 ``[N, ndim]``; if it depends only on shapes and arguments, it
    is attached by ``geometry``.

    A kernel attached by ``gpu_samples`` does the same on the GPU. Its ``out`` and ``x`` are `DeviceSamples`: one buffer
    on the device, ``block``, and ``offsets`` and ``shapes`` as NumPy arrays. The number of its launches must not grow
    with the number of samples, and it must not wait for the device. If ``out`` and ``x`` have the same shapes, they
    have the same offsets, so an element-wise kernel can process ``block`` as a whole; unused elements between samples
    may be overwritten.

    `on_groups` converts a kernel of arrays or tensors ``[N, ...]`` to such a kernel: it is called for each run of
    samples with equal shapes. The kernels of users' operators are of this kind.

    ``cpu_elements`` does the same for a kernel that computes each element independently. Its arrays can also be one row
    with the elements of all samples, and its first input and its output can be the same memory.

    A *batchwise* kernel (``cpu_batch``, ``gpu_batch``) takes whole Batches and returns Batches, arrays or lists. A
    kernel attached by ``cpu_chunk`` does the same for each chunk; it is for operators that process samples one by one,
    for which stacking the samples would be a needless copy. A kernel attached by ``view`` takes arrays or tensors
    ``[N, ...]``, with all samples of a chunk or with one sample, and returns a view. ``cpu_selection`` attaches a
    kernel that returns elements of each sample, and a function that selects these elements from samples of different
    shapes.

    A kernel of *rows* (``cpu_rows``, ``gpu_rows``, ``cpu_new_rows``, ``gpu_new_rows``) is for boxes, points and labels,
    whose number varies per sample. It receives all samples of a chunk in one call. ``x`` is a ``Rows`` object: the
    samples concatenated along their first axis, ``x.values[total, ...]``, and ``x.starts[N + 1]``. A filling kernel
    fills ``out.values``; an allocating kernel returns ``Rows`` in new memory or arrays ``[N, ...]``. Per-sample
    arguments are ``[N]``; ``x.sample_of_row()`` maps rows to samples. Uniform chunks have the same form, so one kernel
    is enough. Only the first extents can differ within a call: the executor makes one call for each run of samples
    whose other extents are equal. ``spec`` is the spec of the first sample. There is no ``prepare``, and no argument is
    Shaping.

    ``names`` are keyword-only parameters; each kernel receives those that it declares:
    normalized static parameters (int, float, bool, str, enum, tuple, None);
    per-sample ones as arrays: ``[N]`` of int32, float32 or bool, ``[N, k]`` for lists (None if not specified);
    the results of ``prepare``; and from the executor:
    ``spec``/``specs`` (of the first input / all inputs), ``out_spec``/``out_specs``,
    ``draws`` (random operators: ``draws.uniform(count) -> float64[N, count]`` in [0, 1), ``draws.bits(count) ->
    uint32[N, count]``), ``count`` (N); batchwise kernels: ``memory(start, count, shape) -> [count, *shape]``, memory
    for the samples from ``start`` of the only output, which saves a copy, and ``is_discarded() -> bool``: nothing needs
    the results any more, because the program ends or the pipeline is closed or reset, so the kernel may raise an error.
    A kernel of an operator without inputs gets the number of samples from ``out`` or ``count``.

    A group of arguments (`Parameters`: ``window: CropWindow``) is declared in the signature in place of its fields. A
    rule, ``prepare`` function, kernel or function of a reader that declares the group receives it as one object.

    Kernels annotate what they receive: data as ``np.ndarray``, ``torch.Tensor``, `Samples`, `DeviceSamples`, `Rows` or
    `Batch`; per-sample arguments as ``np.ndarray``, or as `Vectors` where lists of different lengths are possible (not
    with `on_groups`); constants as ``int``, ``str`` or ``tuple[float, ...]``. Fields
    of a group are annotated for users, so a kernel lists a per-sample field by its own name, as an array.

How a reader is called
    ``index(*, names)`` is called once, when the pipeline is built, and returns `Entries`. ``read(entry, *,
    names)`` returns a tuple of arrays for each sample. Readers of many small records also have ``read_many(index,
    numbers, *, names)``, which reads a chunk in one call: it returns an array ``[N, ...]`` or a list of N arrays per
    output, or None if a sample needs special handling; ``read`` is then called for each entry and reports the failing
    entry. ``origin(entry)`` and ``source_info(entry, output)`` are called only on demand. ``substitute(entry, *,
    names)`` returns a placeholder for a bad sample; None: zeros with the shape of a readable sample.

How a rule is called
    ``rule(spec, ..., name=value)`` receives all parameters of the signature, normalized. A per-sample argument that is
    a graph value is VARIES, and so is a shaping argument while the graph is built; at run time, a shaping argument is
    the value of the sample. ``spec.shape`` is None while the graph is built. If dtype, ndim or layout of an input is
    unknown (external data), the rule is not called at build time.
"""

from dalify.data.spec import Spec
from dalify.registry.groups import on_groups
from dalify.registry.kernel_operator import (
    RANDOM_STATE,
    Form,
    Kernel,
    KernelOperator,
    MixedKernel,
    SelectionKernel,
    operator,
)
from dalify.registry.kernel_types import AnySamples, Memory, Vectors
from dalify.registry.operator import COMMON_PARAMETERS, SEED, Input, Operator, OperatorFunction
from dalify.registry.output_counts import one_per_entry, types_of_outputs
from dalify.registry.parameter_group import Parameters, argument_names
from dalify.registry.parameters import (
    NO_DEFAULT,
    VARIES,
    VARIES_BY_FRAME,
    AnyShape,
    Canvas,
    Matrix,
    Parameter,
    PerFrame,
    PerSample,
    PerSampleOrFrame,
    Shaping,
)
from dalify.registry.role import Role, Structural, structural
from dalify.registry.schema import pascal_case
from dalify.registry.source import READER_PARAMETERS, FedSource, Reader, Source, fed_source, reader

__all__ = [
    "COMMON_PARAMETERS",
    "NO_DEFAULT",
    "RANDOM_STATE",
    "READER_PARAMETERS",
    "SEED",
    "VARIES",
    "VARIES_BY_FRAME",
    "AnySamples",
    "AnyShape",
    "Canvas",
    "FedSource",
    "Form",
    "Input",
    "Kernel",
    "KernelOperator",
    "Matrix",
    "Memory",
    "MixedKernel",
    "Operator",
    "OperatorFunction",
    "Parameter",
    "Parameters",
    "PerFrame",
    "PerSample",
    "PerSampleOrFrame",
    "Reader",
    "Role",
    "SelectionKernel",
    "Shaping",
    "Source",
    "Spec",
    "Structural",
    "Vectors",
    "argument_names",
    "fed_source",
    "on_groups",
    "one_per_entry",
    "operator",
    "pascal_case",
    "reader",
    "structural",
    "types_of_outputs",
]
