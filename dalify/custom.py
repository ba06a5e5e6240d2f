"""Operators of your own: ``@operator`` adds a function to ``fn``, ``ops``, ``eager`` and dynamic mode.

>>> from dalify import fn
>>> from dalify.custom import PerSample, Spec, operator
>>> @operator
... def vignette(images: Spec, /, *, strength: PerSample[float] = 0.5) -> Spec:
...     '''Darken the corners of images.'''
...     return images
>>> @vignette.cpu
... def _(out, images, *, strength): ...

The signature is the schema, the docstring the documentation, and the body the rule: it returns the type, layout and
shape of the outputs. docs/custom_operators.md describes rules and kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast, overload

from dalify import eager, fn, ops
from dalify.base.errors import OperatorDefinitionError, locating
from dalify.base.source_line import SourceLine
from dalify.data.spec import Spec
from dalify.registry import VARIES, Operator, PerSample, Shaping, catalog
from dalify.registry.custom import CustomOperator

__all__ = ["VARIES", "CustomOperator", "PerSample", "Shaping", "Spec", "operator", "remove"]

# Modules with members that are not operators. Dynamic mode is checked only if it is imported.
_MODULES = (fn.__name__, ops.__name__, eager.__name__, "dalify.experimental.dynamic")


@overload
def operator(rule: Callable[..., Any], /) -> CustomOperator: ...
@overload
def operator(
    *, name: str | None = ..., outputs: int = ..., allocating: bool = ..., random: bool = ..., replace: bool = ...
) -> Callable[[Callable[..., Any]], CustomOperator]: ...
def operator(
    rule: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    outputs: int = 1,
    allocating: bool = False,
    random: bool = False,
    replace: bool = False,
) -> Any:
    """Add an operator; use as a decorator, with or without arguments.

    Args:
        rule: a function of ``Spec`` inputs, which are positional-only (``/``; ``| None = None``: optional; ``*inputs``:
            any number), and keyword-only arguments with annotations: a type (bool, int, float, str, an enumeration of
            ``dalify.types``, ``list[...]``), or ``PerSample[type]`` or ``Shaping[type]`` for arguments that can vary
            per sample. It returns the Spec of the output, or a tuple of them.
        name: path below ``fn``, possibly in a namespace: ``"mylab.vignette"``. By default the function's name.
        outputs: number of outputs.
        allocating: the CPU and GPU functions return their results instead of filling ``out``; needed if the shape of a
            result depends on values.
        random: the functions draw random numbers from ``draws``; calls accept ``seed=``.
        replace: replace an operator of this name that was added before, for instance in a notebook. A definition that
            is executed again unchanged replaces itself.

    Returns:
        the operator. Attach functions with ``@name.cpu`` and ``@name.gpu``.

    Raises:
        OperatorDefinitionError: an invalid signature, or a name that is in use.
    """
    if rule is None:
        return lambda function: _add(function, name, replace, outputs=outputs, allocating=allocating, random=random)
    return _add(rule, name, replace)


def remove(name: str | CustomOperator) -> None:
    """Remove an operator that was added. Pipelines that contain it keep it.

    Args:
        name: the operator, or its path below ``fn``.

    Raises:
        UnknownOperatorError: there is no such operator, or it is one of dalify's.
    """
    with locating(SourceLine.capture()):
        catalog.remove(name.name if isinstance(name, CustomOperator) else name)


def _add(rule: Callable[..., Any], name: str | None, replace: bool, **options: Any) -> CustomOperator:
    found = CustomOperator(rule, getattr(rule, "__name__", "") if name is None else name, **options)
    known = cast("CustomOperator | None", catalog.added(found.name))
    with locating(found.place):
        if known is None:
            _check_members(found)
        catalog.add(found, replace=replace or (known is not None and known.place == found.place))
    return found


def _check_members(operator: Operator) -> None:
    """Reject the name of a function or submodule of ``fn``, ``ops`` or ``eager`` that is not an operator."""
    if catalog.resolve(operator.name) in catalog.names():
        return  # the catalog rejects it; namespaces contain the operators that were used
    *path, own = operator.name.split(".")
    for root in _MODULES:
        spelled = own.replace("_", "") if root == ops.__name__ else own
        module = sys.modules.get(".".join([root, *path]))
        for member, value in [] if module is None else list(vars(module).items()):
            if (member.lower() if root == ops.__name__ else member) != spelled:
                continue
            if not isinstance(getattr(value, "operator", None), Operator):  # operators are compared by the catalog
                raise OperatorDefinitionError(
                    f"{operator.public_name} cannot be added: {root}.{'.'.join([*path, member])} exists and is not an "
                    "operator.",
                    hint="Choose another name.",
                )
