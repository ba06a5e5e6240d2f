"""``@pipeline_def`` converts a Python function to a pipeline factory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, overload

from dalify import frontend
from dalify.base.errors import (
    ArgumentTypeError,
    UnknownArgumentError,
    WrongObjectError,
    locating,
    short_repr,
    suggestion,
)
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.executor.options import OPTION_NAMES, OPTIONS_TEXT
from dalify.pipeline.graph_definition import returned_values
from dalify.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from dalify.pipeline import debugging
else:
    # Imported at first use, because it imports the executor.
    debugging = LazyModule("dalify.pipeline.debugging", "debug mode")

PipelineFactory = Callable[..., Pipeline]

# Methods of a pipeline that programs call on the factory if they forget the parentheses.
_METHODS = ("build", "run", "schedule_run", "feed_input", "epoch_size", "reader_meta", "reset", "serialize")


@overload
def pipeline_def(fn: Callable[..., Any], /) -> PipelineFactory: ...
@overload
def pipeline_def(
    fn: None = None, /, *, enable_conditionals: bool = ..., debug: bool = ..., **pipeline_kwargs: Any
) -> Callable[[Callable[..., Any]], PipelineFactory]: ...
def pipeline_def(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    enable_conditionals: bool = True,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Any:
    """Convert a function that returns graph values to a pipeline factory.

    In the function, and in functions of the user that it calls, ``if``, ``and``, ``or`` and ``not`` on graph values are
    evaluated per sample.

    Args:
        fn: the function. It returns the outputs of the pipeline: a graph value, or a tuple or list of graph values. It
            may return None if it calls operators that run without outputs, such as
            ``fn.python_function(..., num_outputs=0)``.
        enable_conditionals: rewrite conditions; if False, a graph value in an ``if`` is an error.
        debug: run the function for every batch, operator by operator, with the values of the batch, so that
            ``print(images)``, ``images.get()`` and breakpoints work in the function. This is slow. The factory also
            accepts ``debug``.
        pipeline_kwargs: default arguments of ``Pipeline``; calls of the factory may override them.

    Returns:
        the factory. It accepts the arguments of the function and, as keywords, the arguments of ``Pipeline``.

    Example:
        >>> @pipeline_def(batch_size=32, num_threads=4)
        ... def training(folder):
        ...     jpegs, labels = fn.readers.file(file_root=folder, random_shuffle=True)
        ...     return fn.decoders.image(jpegs), labels
        >>> pipe = training("photos", seed=1)
    """

    def decorate(function: Callable[..., Any]) -> PipelineFactory:
        if not callable(function):
            raise ArgumentTypeError.here(
                f"@pipeline_def decorates a function; got {short_repr(function)}.",
                hint="Pass options by name: @pipeline_def(batch_size=32).",
            )
        own_names = set(inspect.signature(function).parameters)

        @functools.wraps(function)
        def factory(*args: Any, **kwargs: Any) -> Pipeline:
            _reject_keywords(function)
            with locating(SourceLine.capture()):
                in_debug = debug if "debug" in own_names else bool(kwargs.pop("debug", debug))
                own, given = _sorted_arguments(function, kwargs)
            options: dict[str, Any] = {**pipeline_kwargs, "enable_conditionals": enable_conditionals, **given}
            traced = frontend.rewrite(function) if options["enable_conditionals"] else function
            if in_debug:
                return debugging.DebugPipeline(functools.partial(traced, *args, **own), **options)
            pipe = Pipeline(**options)
            with pipe:
                result = traced(*args, **own)
            pipe.set_outputs(*returned_values(result))
            return pipe

        factory._is_pipeline_def = True  # pyright: ignore[reportAttributeAccessIssue] -- DALI's mark
        for method in _METHODS:
            setattr(factory, method, functools.partial(_not_called, function, method))
        return factory

    return decorate if fn is None else decorate(fn)


def _not_called(function: Callable[..., Any], method: str, *_: Any, **__: Any) -> NoReturn:
    name = getattr(function, "__name__", "the pipeline function")
    raise WrongObjectError.here(
        f"{name} is a pipeline function, which has no method {method}(); its result is a pipeline.",
        hint=f"Call it first: pipe = {name}(); pipe.{method}().",
    )


def _reject_keywords(function: Callable[..., Any]) -> None:
    """Reject ``**keywords`` when a pipeline is created, so that modules with such a function can be imported."""
    for item in inspect.signature(function).parameters.values():
        if item.kind is inspect.Parameter.VAR_KEYWORD:
            raise ArgumentTypeError(
                f"the pipeline function {function.__name__}() must not accept **{item.name}: its keywords "
                "cannot be distinguished from arguments of the pipeline.",
                line=SourceLine.of_code(function.__code__) if hasattr(function, "__code__") else None,
                hint="List the arguments explicitly. Decorators of the function need functools.wraps.",
            )


def _sorted_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate keyword arguments of the function and of the pipeline; the function has precedence."""
    names = set(inspect.signature(function).parameters)
    own: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in names:
            own[name] = value
        elif name in OPTION_NAMES:
            options[name] = value
        else:
            known = [*sorted(names), *sorted(OPTION_NAMES)]
            takes = f"The function accepts: {', '.join(sorted(names))}. " if names else ""
            raise UnknownArgumentError(
                f"{function.__name__}() and its pipeline have no argument {name!r}.{suggestion(name, known)}",
                hint=f"{takes}{OPTIONS_TEXT}",
            )
    return own, options
