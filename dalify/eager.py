"""Operators that compute immediately, without a pipeline: ``eager.rotate(image, angle=45)``.

All operators of ``dalify.fn`` except readers, with the same names and arguments.

*Samples and batches.* A tensor list, as returned by ``eager.batch(...)`` and pipelines, or a list of arrays, tensors or
bytes, is a batch. Anything else is one sample: an array with any number of dimensions is one sample, and a list of
numbers is one array. A call without a batch computes one sample and returns the type of its input: NumPy arrays for
NumPy arrays (and for bytes and numbers), torch tensors for torch tensors, dalify tensors for dalify tensors. A call
with a batch as input or argument, or with ``batch_size=``, returns tensor lists; single samples are broadcast to the
batch.
Arguments follow the same rule: ``angle=[10, 20]`` is one value, ``angle=eager.batch([10, 20])`` has one value per
sample.

*Layouts.* Plain arrays have no layout and are interpreted as in a pipeline: images with three dimensions are HWC.
Specify another layout with ``layout="CHW"``, or attach it to the data: ``eager.tensor(array, "CHW")``,
``eager.batch(arrays, "CHW")``.

*Random numbers.* With ``seed=`` a call uses the same random numbers each time, those of the first batch of a pipeline.
Without it, every call draws new numbers from a generator of this module: ``eager.seed(7)`` resets it, ``get_state`` and
``set_state`` save and restore it.

*Lazy mode.* In ``with dalify.lazy():`` calls are deferred until a value is needed, and computed together.
"""

from dalify.api import install, module_hooks
from dalify.immediate.calls import make_eager
from dalify.immediate.generator import get_state, seed, set_state
from dalify.immediate.user_data import batch, tensor

__all__ = ["batch", "get_state", "seed", "set_state", "tensor"]

__getattr__, __dir__ = module_hooks(install(__name__, "eager", make_eager, lambda name: name), globals())
