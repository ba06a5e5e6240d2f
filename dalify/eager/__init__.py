"""Operators that compute at once, without a pipeline: ``eager.rotate(image, angle=45)``.

Each operator of ``dalify.fn`` but the readers, under the same name and with the same arguments.

*Samples and batches.* A tensor list, as ``eager.batch(...)`` makes it and as pipelines return it, or a list of arrays,
tensors or bytes, is a batch. Anything else is one sample: an array is one sample however many dimensions it has, and a
list of numbers is one array. A call without a batch computes one sample and returns what it was given: numpy arrays
for numpy arrays (and for bytes and numbers), torch tensors for torch tensors, dalify's tensors for dalify's tensors. A
call with a batch anywhere, or with ``batch_size=``, returns tensor lists; what is one sample in it goes with every
sample of the batch. Arguments follow the same rule: ``angle=[10, 20]`` is one value, ``angle=eager.batch([10, 20])`` is
one for each sample.

*Layouts.* Plain arrays have none, and operators take them for what they take them for in a pipeline: images of three
dimensions are HWC. Say otherwise with ``layout="CHW"``, or keep the layout with the data:
``eager.tensor(array, "CHW")``, ``eager.batch(arrays, "CHW")``.

*Random numbers.* With ``seed=`` a call gives the same numbers each time, those of the first batch of a pipeline.
Without, every call draws new ones from a generator of this module: ``eager.seed(7)`` begins it anew, ``get_state``
and ``set_state`` save it.

*Later.* In ``with dalify.lazy():`` calls are put off until a value is needed, and computed together.
"""

from typing import Any

from dalify.api.namespace import install
from dalify.eager.functions import make_eager
from dalify.eager.generator import get_state, seed, set_state
from dalify.eager.values import batch, tensor

__all__ = ["batch", "get_state", "seed", "set_state", "tensor"]

_operators = install(__name__, "eager", make_eager, lambda name: name)


def __getattr__(name: str) -> Any:
    member = getattr(_operators, name)
    if name in vars(_operators):  # next time Python finds it without asking; old names warn each time
        globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*dir(_operators), *__all__})
