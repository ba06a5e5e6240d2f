"""Explaining, drawing and serializing a pipeline."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentTypeError, PipelineStateError, SerializationError
from dalify.base.optional import LazyModule
from dalify.base.source_line import SourceLine
from dalify.data import tensor_list
from dalify.pipeline.facts import Facts
from dalify.pipeline.options import options_from_json

if TYPE_CHECKING:
    import pathlib

    from dalify.executor.plan import Plan
    from dalify.graph import draw, serialize
else:
    # Imported at first use: few programs draw or serialize a graph.
    pathlib = LazyModule("pathlib", "writing files")
    draw = LazyModule("dalify.graph.draw", "drawing a graph")
    serialize = LazyModule("dalify.graph.serialize", "serializing a graph")

__all__ = ["Inspection"]


class Inspection(Facts):
    """The methods of a pipeline that explain, draw and serialize it."""

    if TYPE_CHECKING:  # defined by the class that uses the mixin

        def build(self) -> None:
            """Check and build the graph."""
            ...

        def set_outputs(self, *outputs: Any) -> None:
            """Set the outputs of the graph."""
            ...

        def __enter__(self) -> Self: ...
        def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None: ...

    def tap(self, name: str) -> Any:
        """Return the output of a named operator for the last returned batch, even if it is not a pipeline output.

        Args:
            name: name of the operator: ``fn.resize(images, size=224, name="resized")``. Create the pipeline
                with ``taps=["resized"]``; other values are not kept.

        Returns:
            a tensor list; a tuple of tensor lists if the operator has several outputs.

        Raises:
            PipelineStateError: the name is not in ``taps``, or no batch has been returned yet.

        Example:
            >>> pipe = training("photos", taps=["resized"])
            >>> batch = pipe.run()
            >>> pipe.tap("resized").shape()
        """
        values = [tensor_list(batch) for batch in self._parts.taps.value(name)]
        return values[0] if len(values) == 1 else tuple(values)

    def explain(self) -> str:
        """Return what each pass did to the graph and why, with the user's lines.

        Pruned, folded, merged, split, placed and copied nodes; with ``processes``, also which nodes run in them.
        """
        self.build()
        assert self._parts.builder.built is not None, "dalify bug: build did not build"
        needed = set(self._parts.builder.graph().nodes())
        pruned = self._parts.definition.unused_nodes()
        lines = [f"  - {node!r} is not needed by any output" for node in pruned]
        text = str(self._parts.builder.built.report)
        head, _, rest = text.partition("\n")
        engine = self._parts.builder.built.engine
        caches = [f"cache: {step}" for step in engine.plan.caches]
        where = []
        if engine.elsewhere is not None:
            where = [
                f"in {self._parts.options.processes} worker processes: {_nodes_of(engine.elsewhere)}",
                f"in this process: {_nodes_of(engine.plan)}",
            ]
        traced = f"{len(needed) + len(pruned)} nodes were traced"
        kernels = engine.plan.describe_kernels(engine.torch_device)
        return "\n".join([traced, head, *lines, *([rest] if rest else []), *where, *caches, *kernels])

    def executor_statistics(self) -> dict[str, Any]:
        """Return the size in bytes of the outputs of each operator; needs ``enable_memory_stats=True``.

        Values inside a chunk of samples share the scratch memory of their thread, so the sum over all operators
        is much larger than the memory of the pipeline.

        Returns:
            by device and name of the operator, ``"CPU_resized"``, lists with one number for each output:
            ``real_memory_size`` (bytes of the largest batch), ``max_real_memory_size`` (bytes of the largest sample),
            and the same values as ``reserved_memory_size`` and ``max_reserved_memory_size``.
            Empty if nothing is measured.
        """
        meter = None if self._parts.builder.built is None else self._parts.builder.built.engine.meter
        return {} if meter is None else meter.statistics()

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the sizes of the shared memory slots that workers fill for ``external_source(parallel=True)``.

        Slots grow with the data, so these are the current sizes.

        Returns:
            ``capacities``: bytes of each slot, one batch of one source; ``per_sample_capacities``: the same, divided by
            the batch size. Empty without parallel sources, and before the pipeline is built.
        """
        sizes = [] if self._parts.builder.built is None else self._parts.builder.built.engine.feeds.shared_bytes
        batch_size = self._parts.options.batch_size
        return {"capacities": sizes, "per_sample_capacities": [-(-size // batch_size) for size in sizes]}

    def save_graph_to_dot_file(
        self,
        filename: str | PathLike[str],
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write the graph, as the user defined it, in Graphviz' DOT language.

        Args:
            filename: path of the file.
            show_tensors: ignored.
            show_ids: ignored, with a warning.
            use_colors: ignored.
        """
        if show_ids is not None:
            warn_deprecated("The argument 'show_ids' no longer has an effect and can be omitted.")
        pathlib.Path(filename).write_text(draw.to_dot(self._parts.builder.graph()))

    def save_graph_to_svg_file(self, filename: str | PathLike[str]) -> None:
        """Draw the graph, as the user defined it, as SVG; no other program is needed.

        Args:
            filename: path of the file.
        """
        pathlib.Path(filename).write_text(draw.to_svg(self._parts.builder.graph()))

    def _repr_svg_(self) -> str:
        """Show the graph in a notebook."""
        return draw.to_svg(self._parts.builder.graph())

    def serialize(self, define_graph: Any = None, filename: str | PathLike[str] | None = None) -> bytes:
        """Return the graph and the main arguments as JSON, which ``deserialize`` reads without executing code.

        Args:
            define_graph: a function that returns the outputs; for old programs.
            filename: path of a file to which the JSON is also written.

        Raises:
            SerializationError: the graph contains Python functions.
        """
        if define_graph is not None:
            with self:
                result = define_graph()
            self.set_outputs(*(result if isinstance(result, (tuple, list)) else (result,)))
        options = self._parts.options
        text = serialize.dumps({**serialize.to_json(self._parts.builder.graph()), "options": options.as_json()})
        if filename is not None:
            pathlib.Path(filename).write_bytes(text)
        return text

    @classmethod
    def deserialize(
        cls,
        serialized_pipeline: bytes | str | None = None,
        filename: str | PathLike[str] | None = None,
        *,
        allow_side_effects: bool = False,
        **options: Any,
    ) -> Self:
        """Create a pipeline from the result of ``serialize``.

        No code in the JSON is executed. Its readers can read any file that this process can.

        Args:
            serialized_pipeline: the JSON; or
            filename: path of a file that contains it.
            allow_side_effects: accept operators that write files or run Python code, such as ``fn.dump_image``. Only
                for trusted input.
            options: arguments of ``Pipeline`` that override those in the JSON.

        Raises:
            SerializationError: not a serialized pipeline, damaged, or with an operator that writes files or runs Python
                code.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ArgumentTypeError("pass either the serialized pipeline or filename.", line=SourceLine.capture())
        data = serialize.loads(
            serialized_pipeline if serialized_pipeline is not None else pathlib.Path(filename or "").read_bytes()
        )
        graph = serialize.from_json(data, allow_side_effects=allow_side_effects)
        saved = data.get("options", {})
        given = {name: value for name, value in options.items() if value is not None}
        pipe = cls(**{**options_from_json(saved), **given})
        pipe._parts.definition.take(graph)
        return pipe

    def __reduce__(self) -> NoReturn:
        """Raise an error: a pipeline cannot be pickled or copied.

        Raises:
            SerializationError: always; the message says what to send instead.
        """
        raise SerializationError(
            "a pipeline cannot be pickled or copied: it owns threads and batches in progress.",
            line=self._parts.line,
            hint="Send the function that creates it and call it in the other process, or send pipe.serialize() and "
            "call Pipeline.deserialize() there. pipe.state_dict() contains the position of the run.",
        )

    def deserialize_and_build(self, serialized_pipeline: bytes | str, *, allow_side_effects: bool = False) -> None:
        """Load the graph of a serialized pipeline and build it with this pipeline's own arguments.

        Args:
            serialized_pipeline: the JSON.
            allow_side_effects: see ``deserialize``.

        Raises:
            PipelineStateError: this pipeline already has a graph.
            SerializationError: see ``deserialize``.
        """
        if not self._parts.definition.is_empty:
            raise PipelineStateError("this pipeline already has a graph.", line=self._parts.line)
        graph = serialize.from_json(serialize.loads(serialized_pipeline), allow_side_effects=allow_side_effects)
        self._parts.definition.take(graph)
        self.build()


def _nodes_of(plan: Plan) -> str:
    """Describe the user's nodes of a plan."""
    nodes = [step.node for stage in plan.stages for step in stage.steps if not step.node.operator.name.startswith("_")]
    return ", ".join(map(repr, nodes)) or "nothing"
