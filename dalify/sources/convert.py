"""Converts data from users to batches.

Data from callbacks, worker processes, ``feed_input`` and run arguments is converted in the same way: NumPy arrays,
torch tensors, anything with an array interface or DLPack, scalars, nested lists, and dalify's own tensors. Samples with
equal shapes become one dense array, with one copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import BatchSizeError, DalifyError, DTypeError, LayoutError, ShapeError, SourceError
from dalify.base.narrow import is_array
from dalify.base.optional import is_loaded, torch
from dalify.base.wording import counted
from dalify.data.batch import Array, Batch
from dalify.data.dtypes import DALIDataType, from_numpy
from dalify.data.exchange import cuda_tensor
from dalify.data.tensor import shared_layout
from dalify.data.tensors import TensorListCPU, TensorListGPU, batch_of
from dalify.data.torch_unsigned import stacked_torch
from dalify.sources.declaration import Declaration

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]
_NUMBER_DTYPES: dict[type, type] = {int: np.int64, float: np.float64, bool: np.bool_}
_DLPACK_CPU_DEVICES = (1, 3)  # kDLCPU and kDLCUDAHost of dlpack.h
_ACCEPTED = "Pass NumPy arrays, torch tensors, numbers, or objects with an array interface or DLPack."


def to_array(value: Any) -> Array:
    """Convert one value to an array, without a copy if possible.

    Args:
        value: NumPy array or scalar, torch tensor, number, nested list of numbers, object with ``__array_interface__``,
            ``__array__``, ``__cuda_array_interface__`` or ``__dlpack__``, or DLPack capsule.

    Returns:
        A C-contiguous NumPy array in native byte order for data in host memory, a torch tensor for data on a device.

    Raises:
        SourceError: the value does not contain numbers, or is a nested list of unequal lengths.
        DTypeError: the dtype is not supported in pipelines: objects, strings, complex numbers, dates.
    """
    if type(value) is not np.ndarray:
        value = _foreign_array(value)
        if not isinstance(value, np.ndarray):
            return value
    if value.dtype.char == "O":
        raise DTypeError("arrays of Python objects cannot be used.", hint=_ACCEPTED)
    if value.dtype.char in "US":
        raise DTypeError(
            "strings cannot be used as data.", hint="Pass its bytes: np.frombuffer(text.encode(), np.uint8) for a str."
        )
    kind = from_numpy(value.dtype)
    if kind is DALIDataType.BFLOAT16:
        raise DTypeError("arrays of bfloat16 elements cannot be used.", hint="Convert with .astype(np.float32).")
    dtype = kind.numpy
    # ascontiguousarray would add a dimension to a 0-d array.
    return np.asarray(value, dtype, order="C")


def _foreign_array(value: Any) -> Any:
    if value is None:
        raise SourceError("None cannot be used as data.", hint="Raise StopIteration to end an epoch.")
    if is_loaded("torch") and isinstance(value, torch.Tensor):
        return _from_torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return cuda_tensor(value)
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        device, _ = value.__dlpack_device__()
        return np.from_dlpack(value) if device in _DLPACK_CPU_DEVICES else torch.from_dlpack(value)
    if type(value).__name__ == "PyCapsule":
        return _from_torch(torch.from_dlpack(value))
    if isinstance(value, (bool, int, float, str, bytes, list, tuple, bytearray, memoryview)):
        try:
            return np.asarray(value)
        except ValueError:
            raise SourceError(
                "a nested list with different lengths is not an array.",
                hint="Pass one array per sample; their shapes may differ.",
            ) from None
    raise SourceError(f"a value of type {type(value).__name__} cannot be used as data.", hint=_ACCEPTED)


def writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array, or a copy if it is read-only; kernels would be compiled a second time for read-only arrays."""
    return array if array.flags.writeable else array.copy()


def _from_torch(tensor: Any) -> Any:
    if tensor.device.type != "cpu":
        return tensor.detach()
    if tensor.layout is not torch.strided:
        raise SourceError("sparse tensors cannot be used as data.", hint="Call .to_dense() first.")
    if tensor.dtype is torch.bfloat16:
        raise DTypeError("tensors of bfloat16 elements cannot be used.", hint="Convert with .to(torch.float32).")
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def to_batch(
    data: Any,
    *,
    copy: bool = True,
    layout: str = "",
    allocate: Allocate = np.empty,
) -> Batch:
    """Convert user data to a batch.

    Args:
        data: an array with a leading sample axis, a list or tuple of samples, a dalify ``Batch`` or tensor list.
            Samples are values that ``to_array`` accepts, or strings (UTF-8) and bytes, which become uint8 ``[n]``, also
            as ``{"bytes": ...}``, the form of images and audio that Hugging Face does not decode.
        copy: copy the data, so that the user may modify the buffers immediately. Otherwise contiguous arrays are used
            without a copy, and a list of samples stays a list.
        layout: letters of a sample's dimensions; "" keeps the layout of a tensor list, or of tensors.
        allocate: allocates the memory of dense host batches: ``allocate(shape, dtype)``.

    Returns:
        A dense batch if all samples have the same shape (with ``copy``), else a list.

    Raises:
        SourceError: the data does not contain numbers, mixes host and device memory, or has no samples.
        DTypeError: the dtype is not supported or differs between samples.
        ShapeError: samples have different numbers of dimensions, or there is no sample axis.
    """
    wrapped = _wrapped_batch(data)
    if wrapped is not None:
        if not len(wrapped):
            raise _no_samples_error()
        return (_copy_of(wrapped, allocate) if copy else wrapped).with_layout(layout or wrapped.layout)
    if isinstance(data, (list, tuple)) or _is_foreign_tensor_list(data):
        return _from_samples(data, copy, layout, allocate)
    dense = to_array(data)
    if dense.ndim == 0:
        raise ShapeError(
            "a single number is not a batch.",
            hint="Pass an array with a leading sample axis, or a list with one item per sample.",
        )
    if not len(dense):
        raise _no_samples_error()
    if not isinstance(dense, np.ndarray):
        return Batch(dense.clone() if copy else dense, None, layout, "gpu")
    # to_array may have copied already, but for small batches np.shares_memory takes longer than a copy.
    if copy:
        fresh = allocate(dense.shape, dense.dtype)
        np.copyto(fresh, dense)
        dense = fresh
    return Batch(dense, None, layout)


def _wrapped_batch(data: Any) -> Batch | None:
    if isinstance(data, (TensorListCPU, TensorListGPU)):
        return batch_of(data)
    found = data if isinstance(data, Batch) else getattr(data, "batch", None)  # batches of eager and dynamic mode
    return found if isinstance(found, Batch) else None


def _is_foreign_tensor_list(data: Any) -> bool:
    return hasattr(data, "is_dense_tensor") and hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _copy_of(batch: Batch, allocate: Allocate) -> Batch:
    if batch.device != "cpu" or batch.dense is None:
        return batch.copied()
    fresh = allocate(batch.dense.shape, batch.dense.dtype)
    np.copyto(fresh, batch.dense)
    return Batch(fresh, None, batch.layout, "cpu", batch.origins)


def _no_samples_error() -> SourceError:
    return SourceError("a batch without samples cannot be used.", hint="Raise StopIteration to end an epoch.")


def _from_samples(data: Sequence[Any], copy: bool, layout: str, allocate: Allocate) -> Batch:
    if not len(data):
        raise _no_samples_error()
    types = set(map(type, data))
    if len(types) == 1 and types <= {int, float, bool}:
        try:
            return Batch(np.array(data, _NUMBER_DTYPES[types.pop()]), None, layout)
        except OverflowError:
            raise DTypeError("a number does not fit into 64 bits.") from None
    # Copying normalizes strides, so arrays of common dtypes need no conversion.
    plain = copy and types == {np.ndarray} and data[0].dtype.isnative and data[0].dtype.kind in "biuf"
    samples = list(data) if plain else _to_arrays(data)
    _check_devices(samples)
    # list.count compares by identity first, which is fast for samples with the same dtype object.
    dtypes = [sample.dtype for sample in samples]
    if dtypes.count(dtypes[0]) != len(samples):
        odd = next(index for index, dtype in enumerate(dtypes) if dtype != dtypes[0])
        raise DTypeError(
            f"sample {odd} has dtype {dtypes[odd]}, but sample 0 has dtype {dtypes[0]}.",
            hint="Convert all samples of a batch to the same dtype.",
            sample=odd,
        )
    if plain:
        from_numpy(dtypes[0])  # rejects long double
    shapes = [sample.shape for sample in samples]
    uniform = shapes.count(shapes[0]) == len(samples)
    if not uniform:
        _check_ndims(shapes)
    if not plain and not layout:
        layout = shared_layout(data)
    return _join_samples(samples, uniform, copy, layout, allocate)


def _to_arrays(data: Sequence[Any]) -> list[Array]:
    samples: list[Any] = []
    try:
        for sample in data:
            samples.append(_to_sample(sample))
    except DalifyError as error:
        error.locate(sample=len(samples))
        raise
    return samples


def _to_sample(value: Any) -> Array:
    """Convert one sample; unlike a batch, it may be a string."""
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        value = value["bytes"]
    if isinstance(value, (str, bytes)):
        return np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
    return to_array(value)


def _check_devices(samples: list[Array]) -> None:
    in_host_memory = [isinstance(sample, np.ndarray) for sample in samples]
    if in_host_memory.count(in_host_memory[0]) != len(samples):
        odd = in_host_memory.index(not in_host_memory[0])
        raise SourceError(
            f"sample {odd} is in {'host' if in_host_memory[odd] else 'device'} memory, sample 0 is not.",
            hint="Pass all samples of a batch on the same device.",
            sample=odd,
        )


def _check_ndims(shapes: list[tuple[int, ...]]) -> None:
    odd = next((index for index, shape in enumerate(shapes) if len(shape) != len(shapes[0])), None)
    if odd is not None:
        raise ShapeError(
            f"sample {odd} has {counted(len(shapes[odd]), 'dimension')} {tuple(shapes[odd])}, but sample 0 has "
            f"{len(shapes[0])} {tuple(shapes[0])}.",
            hint="Extents may differ within a batch, but the number of dimensions must not.",
            sample=odd,
        )


def _join_samples(samples: list[Any], uniform: bool, copy: bool, layout: str, allocate: Allocate) -> Batch:
    device = "cpu" if isinstance(samples[0], np.ndarray) else "gpu"
    if not copy:
        return Batch(None, samples, layout, device)
    if device == "gpu":
        if uniform:
            return Batch(stacked_torch(samples), None, layout, device)
        return Batch(None, [sample.clone() for sample in samples], layout, device)
    if not uniform:
        return Batch(None, [np.array(sample, order="C") for sample in samples], layout)
    shape = samples[0].shape
    dense = allocate((len(samples), *shape), samples[0].dtype)
    if shape and dense.size:
        # One call without a view of each sample takes half the time of np.stack for small samples.
        np.concatenate(samples, out=dense.reshape(len(samples) * shape[0], *shape[1:]))
    else:
        for row, sample in enumerate(samples):
            dense[row] = sample
    return Batch(dense, None, layout)


class BatchConverter:
    """Converts user data for one output to batches, and checks it against the declaration.

    The dtype and the number of dimensions are as declared, or those of the first batch. They must be the same for all
    batches, because the plan depends on them.

    Args:
        declaration: the user's declaration.
        batch_size: maximum number of samples in a batch.
        copy: see ``to_batch``.
        allocate: see ``to_batch``.
    """

    def __init__(
        self, declaration: Declaration, *, batch_size: int, copy: bool = True, allocate: Allocate = np.empty
    ) -> None:
        self.dtype, self.ndim, self.layout = declaration.dtype, declaration.ndim, declaration.layout
        self.batch_size = batch_size
        self.copy = copy
        self.allocate = allocate
        self._seen = False

    def __call__(self, data: Any) -> Batch:
        """Convert the next batch of this output.

        Raises:
            BatchSizeError: there are more samples than ``batch_size``.
            DTypeError: the dtype differs from the declaration or earlier batches.
            ShapeError: the number of dimensions differs from the declaration or earlier batches.
            LayoutError: the layout does not match the number of dimensions.
            SourceError: see ``to_batch``.
        """
        batch = to_batch(data, copy=self.copy, layout=self.layout, allocate=self.allocate)
        if len(batch) > self.batch_size:
            raise BatchSizeError(
                f"the batch has {counted(len(batch), 'sample')}, but the pipeline's batch_size is {self.batch_size}.",
                hint="Pass at most batch_size samples, or build the pipeline with a larger batch_size."
                + (" The first axis of an array counts the samples: for a single one, write [array]." * is_array(data)),
            )
        if self.layout and batch.ndim != len(self.layout):
            raise LayoutError(
                f"the layout {self.layout!r} does not match samples with {_dimensions(batch)}.",
                hint="Specify one letter for each dimension of a sample, without the sample axis.",
            )
        if self.dtype is not None and batch.dtype != self.dtype:
            raise DTypeError(
                f"the data has dtype {batch.dtype.text}, but {self._source_of_declaration()} {self.dtype.text}.",
                hint="Convert the data; all batches of an output must have the same dtype.",
            )
        if self.ndim is not None and batch.ndim != self.ndim:
            raise ShapeError(
                f"the samples have {_dimensions(batch)}, but {self._source_of_declaration()} {self.ndim}.",
                hint="Extents may differ between batches, but the number of dimensions must not.",
            )
        if not self._seen:
            self.dtype, self.ndim, self._seen = batch.dtype, batch.ndim, True
        return batch

    def _source_of_declaration(self) -> str:
        return "earlier batches had" if self._seen else "the declared one is"


def _dimensions(batch: Batch) -> str:
    return f"{counted(batch.ndim, 'dimension')} {batch.shapes()[0]}"
