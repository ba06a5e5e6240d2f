# ruff: noqa: SIM108 -- the programs are what is tested
"""Mistakes with pipelines, sources and readers, in both libraries; the class of the error is compared."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.compatibility.programs import Program, run

PIPELINE_MISTAKES: dict[str, Program] = {}
_FOLDER = Path(tempfile.gettempdir()) / "dalify-pipeline-mistakes"
_ROWS = np.arange(8, dtype=np.int32).reshape(2, 4)


def mistake(function: Program) -> Program:
    PIPELINE_MISTAKES[function.__name__.replace("_", " ")] = function
    return function


def mistakes(prefix: str, **programs: Program) -> None:
    PIPELINE_MISTAKES.update({f"{prefix}: {name.replace('_', ' ')}": made for name, made in programs.items()})


def simple(dali: Any, **options: Any) -> Any:
    options = {"batch_size": 2, "num_threads": 1, "device_id": None, "prefetch_queue_depth": 1, **options}
    return dali.pipeline_def(lambda: dali.fn.external_source(name="x") + 1)(**options)


def built(dali: Any, **options: Any) -> Any:
    pipe = simple(dali, **options)
    pipe.build()
    return pipe


def counting(dali: Any, **options: Any) -> Any:
    options = {"batch_size": 2, "num_threads": 1, "device_id": None, **options}
    return dali.pipeline_def(lambda: dali.fn.external_source(source=lambda: _ROWS))(**options)


def source(data: Any, **options: Any) -> Program:
    """Return a program: a pipeline with a source that returns `data`, or with `data` as source."""

    def made(dali: Any) -> Any:
        given = {key: value(dali) if callable(value) else value for key, value in options.items()}
        taken = data if callable(data) or given.pop("whole", False) else (lambda: data)
        count = given.pop("runs", 1)

        def pipeline():
            found = dali.fn.external_source(source=taken, **given)
            return tuple(found) if isinstance(found, (list, tuple)) else found

        return run(dali, pipeline, runs=count)

    return made


def of_graph(function: Callable[[Any], Any], **options: Any) -> Program:
    return lambda dali: run(dali, lambda: function(dali), **options)


def of_pipe(function: Callable[[Any], Any], **options: Any) -> Program:
    return lambda dali: function(built(dali, **options))


def _with_step(function: Callable[[Any], Any]) -> Program:
    def made(dali: Any) -> Any:
        pipe = counting(dali)
        pipe.build()
        return function(pipe)

    return made


_TWO_QUEUES = {"cpu_size": 2, "gpu_size": 2}

# -- creating pipelines ------------------------------------------------------------------------------------------------

mistakes(
    "options",
    batch_size_of_a_text=lambda dali: built(dali, batch_size="two"),
    batch_size_of_zero=lambda dali: built(dali, batch_size=0).run(x=_ROWS),
    negative_batch_size=lambda dali: built(dali, batch_size=-3).run(x=_ROWS),
    threads_of_a_text=lambda dali: built(dali, num_threads="two"),
    no_threads=lambda dali: built(dali, num_threads=0).run(x=_ROWS),
    unknown_option=lambda dali: built(dali, no_such_option=1),
    queue_of_a_text=lambda dali: built(dali, prefetch_queue_depth="x"),
    queue_of_nothing=lambda dali: built(dali, prefetch_queue_depth=0).run(x=_ROWS),
    queue_without_a_size=lambda dali: built(dali, prefetch_queue_depth={"cpu_size": 1}, exec_dynamic=False),
    two_queues_without_threads=lambda dali: built(dali, prefetch_queue_depth=_TWO_QUEUES, exec_async=False).run(
        x=_ROWS
    ),
    two_queues_of_dynamic_memory=lambda dali: built(dali, prefetch_queue_depth=_TWO_QUEUES, exec_dynamic=True).run(
        x=_ROWS
    ),
    queue_of_unknown_sizes=lambda dali: built(dali, prefetch_queue_depth={"a": 1, "b": 2}, exec_dynamic=False),
    seed_of_a_text=lambda dali: built(dali, seed="x"),
    seed_of_a_fraction=lambda dali: built(dali, seed=1.5),
    device_of_a_text=lambda dali: built(dali, device_id="x"),
    stream_policy_of_a_number=lambda dali: built(dali, stream_policy=3),
    concurrency_of_a_number=lambda dali: built(dali, concurrency=3),
    no_batch_size=lambda dali: dali.pipeline_def(lambda: dali.fn.random.uniform())().build(),
    bytes_per_sample=lambda dali: built(dali, bytes_per_sample="x"),
    layout_of_a_number=lambda dali: built(dali, output_layout=5),
    dtype_of_a_text=lambda dali: built(dali, output_dtype="float"),
    checkpoint_of_nonsense=lambda dali: built(dali, checkpoint="nonsense", enable_checkpointing=True),
    pipeline_def_twice=lambda dali: dali.pipeline_def(dali.pipeline_def(lambda: dali.fn.random.uniform()))(
        batch_size=1, num_threads=1, device_id=None
    ),
    missing_argument=lambda dali: dali.pipeline_def(lambda folder: dali.fn.random.uniform())(
        batch_size=1, num_threads=1, device_id=None
    ),
    unknown_argument=lambda dali: dali.pipeline_def(lambda: dali.fn.random.uniform())(
        batch_size=1, num_threads=1, device_id=None, folder="x"
    ),
)


# -- graphs ------------------------------------------------------------------------------------------------------------


def _of_another(dali: Any) -> Any:
    kept: list[Any] = []
    dali.pipeline_def(lambda: kept.append(dali.fn.external_source(name="x")) or kept[0])(
        batch_size=2, num_threads=1, device_id=None
    )
    return run(dali, lambda: kept[0] + 1)


def _no_outputs(dali: Any) -> Any:
    pipe = dali.Pipeline(2, 1, None)
    with pipe:
        dali.fn.random.uniform()
    pipe.build()
    pipe.run()


def _outputs_of(value: Any) -> Program:
    def made(dali: Any) -> Any:
        pipe = dali.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(value(dali) if callable(value) else value)
        pipe.build()
        return pipe.run()

    return made


def _condition_of_a_row(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = dali.fn.external_source(source=lambda: _ROWS)
        if x:
            y = x + 1
        else:
            y = x
        return y

    return pipeline().run()


def _condition_of_an_image(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = dali.fn.external_source(source=lambda: _ROWS)
        return x if not x else x + 1

    return pipeline().run()


def _one_branch_only(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 2]))
        if x > 1:
            y = x + 1
        return y

    return pipeline().run()


def _branches_of_other_types(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 2]))
        if x > 1:
            y = x + 1
        else:
            y = dali.fn.cast(x, dtype=dali.types.FLOAT)
        return y

    return pipeline().run()


def _branches_of_other_structures(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 2]))
        if x > 1:
            y = (x, x)
        else:
            y = x
        return y

    return pipeline().run()


def _on(function: Callable[[Any, Any], Any], data: Any = _ROWS, layout: str | None = None) -> Program:
    """A program of one function of one external source."""

    def made(dali: Any) -> Any:
        return run(dali, lambda: function(dali, dali.fn.external_source(source=lambda: data, layout=layout)))

    return made


mistakes(
    "graphs",
    of_another_pipeline=_of_another,
    without_outputs=_no_outputs,
    returning_a_text=of_graph(lambda dali: "text"),
    returning_an_object=of_graph(lambda dali: object()),
    returning_a_dictionary=of_graph(lambda dali: {"x": dali.fn.random.uniform()}),
    returning_a_nested_list=of_graph(lambda dali: (dali.fn.random.uniform(), [dali.fn.random.uniform()])),
    set_outputs_of_a_text=_outputs_of("text"),
    set_outputs_of_an_object=_outputs_of(object),
    set_outputs_of_a_dictionary=_outputs_of(lambda dali: {"x": dali.fn.random.uniform()}),
    operator_of_a_text=of_graph(lambda dali: dali.fn.flip("x")),
    operator_of_an_object=of_graph(lambda dali: dali.fn.flip(object())),
    operator_without_input=of_graph(lambda dali: dali.fn.flip()),
    too_many_inputs=_on(lambda dali, x: dali.fn.flip(x, x)),
    unknown_function=_on(lambda dali, x: dali.fn.no_such_function(x)),
    unknown_module=_on(lambda dali, x: dali.fn.no_such_module.resize(x)),
    unknown_class=_on(lambda dali, x: dali.ops.NoSuchOperator()(x)),
    unknown_type=_on(lambda dali, x: dali.fn.cast(x, dtype=dali.types.FLOAT128)),
    unknown_interpolation=_on(lambda dali, x: dali.fn.resize(x, size=[2, 2], interp_type=dali.types.INTERP_FOO)),
    interpolation_of_a_text=_on(
        lambda dali, x: dali.fn.resize(x, size=[2, 2], interp_type="linear"), np.zeros((2, 4, 4, 3), np.uint8), "HWC"
    ),
    interpolation_of_a_number=_on(
        lambda dali, x: dali.fn.resize(x, size=[2, 2], interp_type=77), np.zeros((2, 4, 4, 3), np.uint8), "HWC"
    ),
    dtype_of_a_text=_on(lambda dali, x: dali.fn.cast(x, dtype="float")),
    dtype_of_a_number=_on(lambda dali, x: dali.fn.cast(x, dtype=777)),
    dtype_None=_on(lambda dali, x: dali.fn.cast(x, dtype=None)),
    no_dtype=_on(lambda dali, x: dali.fn.cast(x)),
    device_of_nonsense=_on(lambda dali, x: dali.fn.flip(x, device="tpu")),
    device_of_a_number=_on(lambda dali, x: dali.fn.flip(x, device=3)),
    mixed_device=_on(lambda dali, x: dali.fn.flip(x, device="mixed")),
    name_of_a_number=_on(lambda dali, x: dali.fn.flip(x, name=3)),
    seed_of_a_text=of_graph(lambda dali: dali.fn.random.uniform(seed="x")),
    preserve_of_a_text=_on(lambda dali, x: dali.fn.flip(x, preserve="x")),
    node_as_static=_on(lambda dali, x: dali.fn.cast(x, dtype=x)),
    list_of_nodes=_on(lambda dali, x: dali.fn.crop(x, crop=[x, x])),
    truth=_on(lambda dali, x: x if x else x + 1),
    truth_and=_on(lambda dali, x: (x and x) + 1),
    iteration=_on(lambda dali, x: [item + 1 for item in x]),
    unpacking=_on(lambda dali, x: (lambda a, b: a)(*x)),
    length=_on(lambda dali, x: x[: len(x)]),
    number=_on(lambda dali, x: x + int(x)),
    fraction=_on(lambda dali, x: x + float(x)),
    as_an_index=_on(lambda dali, x: x + [1, 2, 3][x]),
    plus_a_text=_on(lambda dali, x: x + "text"),
    plus_None=_on(lambda dali, x: x + None),
    text_plus=_on(lambda dali, x: "text" + x),
    plus_an_object=_on(lambda dali, x: x + object()),
    plus_a_complex=_on(lambda dali, x: x + 1j),
    power_of_a_text=_on(lambda dali, x: x ** "2"),
    comparing_with_a_text=_on(lambda dali, x: x < "text"),
    shapes_that_do_not_broadcast=_on(lambda dali, x: x + dali.types.Constant(np.int32([1, 2, 3]), device="cpu")),
    bits_of_fractions=_on(lambda dali, x: dali.fn.cast(x, dtype=dali.types.FLOAT) & 1),
    setting_an_item=_on(lambda dali, x: x.__setitem__(0, 1)),
    index_of_a_text=_on(lambda dali, x: x["a"]),
    index_of_a_fraction=_on(lambda dali, x: x[1.5]),
    too_many_indices=_on(lambda dali, x: x[0, 0, 0]),
    index_out_of_range=_on(lambda dali, x: x[9]),
    two_ellipses=_on(lambda dali, x: x[..., ...]),
    step_of_zero=_on(lambda dali, x: x[::0]),
    unknown_attribute=_on(lambda dali, x: x.no_such_attribute),
    math_of_a_text=of_graph(lambda dali: dali.math.sqrt("x")),
    math_of_nothing=of_graph(lambda dali: dali.math.sqrt()),
    math_outside=lambda dali: dali.math.sqrt(3) + dali.types.Constant("x"),
    constant_of_a_text=of_graph(lambda dali: dali.types.Constant("x")),
    constant_of_None=of_graph(lambda dali: dali.types.Constant(None)),
    constant_of_an_object=of_graph(lambda dali: dali.types.Constant(object())),
    constant_of_ragged_lists=of_graph(lambda dali: dali.types.Constant([[1], [2, 3]], device="cpu")),
    constant_of_another_shape=of_graph(lambda dali: dali.types.Constant([1, 2, 3], shape=[2], device="cpu")),
    constant_on_a_device_of_nonsense=of_graph(lambda dali: dali.types.Constant([1, 2], device="cuda")),
    constant_on_mixed_device=of_graph(lambda dali: dali.types.Constant([1, 2], device="mixed")),
    constant_of_data_and_more=of_graph(lambda dali: dali.fn.constant(idata=[1], fdata=[2.0])),
    constant_of_nothing=of_graph(lambda dali: dali.fn.constant()),
    condition_of_a_row=_condition_of_a_row,
    condition_of_an_image=_condition_of_an_image,
    one_branch_only=_one_branch_only,
    branches_of_other_types=_branches_of_other_types,
    branches_of_other_structures=_branches_of_other_structures,
)


# -- running -----------------------------------------------------------------------------------------------------------


def _without_building(method: str, *arguments: Any) -> Program:
    return lambda dali: getattr(counting(dali), method)(*arguments)


def _run_after_scheduling(pipe: Any) -> Any:
    pipe.schedule_run()
    return pipe.run()


def _outputs_after_running(pipe: Any) -> Any:
    pipe.run()
    pipe.outputs()
    pipe.outputs()
    return pipe.outputs()


def _ended(dali: Any) -> Any:
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(source=[_ROWS]))(
        batch_size=2, num_threads=1, device_id=None
    )
    pipe.build()
    for _ in range(3):
        pipe.run()


def _fed_after_a_source(dali: Any) -> Any:
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(source=lambda: _ROWS, name="x"))(
        batch_size=2, num_threads=1, device_id=None
    )
    pipe.build()
    pipe.feed_input("x", _ROWS)


def _fed(*batches: Any, **options: Any) -> Program:
    def made(dali: Any) -> Any:
        pipe = built(dali)
        for batch in batches:
            pipe.feed_input("x", batch, **options)
            pipe.run()

    return made


mistakes(
    "running",
    nothing_was_fed=of_pipe(lambda pipe: pipe.run()),
    unknown_input=of_pipe(lambda pipe: pipe.run(y=_ROWS)),
    input_by_position=of_pipe(lambda pipe: pipe.run(_ROWS)),
    feeding_a_number_as_name=of_pipe(lambda pipe: pipe.feed_input(3, _ROWS)),
    feeding_an_operator=lambda dali: built(dali).feed_input(dali.ops.Flip(), _ROWS),
    feeding_None_as_name=of_pipe(lambda pipe: pipe.feed_input(None, _ROWS)),
    feeding_before_building=lambda dali: simple(dali).feed_input("y", _ROWS),
    feeding_a_source=_fed_after_a_source,
    feeding_None=_fed(None),
    feeding_a_text=_fed("text"),
    feeding_a_number=_fed(3),
    feeding_too_much=_fed(np.zeros((5, 3), np.int32)),
    feeding_objects=_fed([object(), object()]),
    feeding_text_arrays=_fed(np.array(["a", "b"])),
    feeding_mixed_types=_fed([np.zeros(2, np.int32), np.zeros(2, np.float32)]),
    feeding_mixed_dimensions=_fed([np.zeros(2, np.int32), np.zeros((2, 2), np.int32)]),
    feeding_None_among_samples=_fed([np.zeros(2, np.int32), None]),
    feeding_a_layout_that_does_not_fit=_fed(_ROWS, layout="HWC"),
    feeding_a_layout_of_a_number=_fed(_ROWS, layout=3),
    feeding_a_dictionary=_fed({"a": _ROWS}),
    outputs_before_scheduling=_with_step(lambda pipe: pipe.outputs()),
    shared_before_scheduling=_with_step(lambda pipe: pipe.share_outputs()),
    run_after_scheduling=_with_step(_run_after_scheduling),
    outputs_after_running=_with_step(_outputs_after_running),
    ended=_ended,
    epoch_size_of_nothing=of_pipe(lambda pipe: pipe.epoch_size("Reader")),
    meta_of_nothing=of_pipe(lambda pipe: pipe.reader_meta("Reader")),
    meta_of_a_number=of_pipe(lambda pipe: pipe.reader_meta(3)),
    deserialized_nonsense=lambda dali: dali.Pipeline.deserialize(b"nonsense", batch_size=2, num_threads=1),
    deserialized_nothing=lambda dali: dali.Pipeline.deserialize(),
    deserialized_both=lambda dali: dali.Pipeline.deserialize(b"x", filename="y"),
    deserialized_no_file=lambda dali: dali.Pipeline.deserialize(filename="/no/such/file"),
    unknown_output=_with_step(lambda pipe: pipe.run()[1]),
    unknown_sample=_with_step(lambda pipe: pipe.run()[0].at(5)),
    unknown_item=_with_step(lambda pipe: pipe.run()[0][5]),
    reshaped_to_another_size=_with_step(lambda pipe: pipe.run()[0].as_reshaped_tensor([3, 3])),
    unknown_method=_with_step(lambda pipe: pipe.no_such_method()),
    current_pipeline=lambda dali: dali.Pipeline.current().run(),
)


def _ragged_array(dali: Any) -> Any:
    pipe = dali.pipeline_def(
        lambda: dali.fn.external_source(source=lambda: [np.zeros(2, np.int32), np.zeros(3, np.int32)])
    )(batch_size=2, num_threads=1, device_id=None)
    pipe.build()
    return pipe.run()[0].as_array()


def _ragged_tensor(dali: Any) -> Any:
    pipe = dali.pipeline_def(
        lambda: dali.fn.external_source(source=lambda: [np.zeros(2, np.int32), np.zeros(3, np.int32)])
    )(batch_size=2, num_threads=1, device_id=None)
    pipe.build()
    return pipe.run()[0].as_tensor()


mistakes(
    "tensors",
    ragged_array=_ragged_array,
    ragged_tensor=_ragged_tensor,
    tensor_of_a_text=lambda dali: dali.tensors.TensorCPU("x"),
    tensor_of_None=lambda dali: dali.tensors.TensorCPU(None),
    list_of_a_number=lambda dali: dali.tensors.TensorListCPU(3),
    list_of_mixed_types=lambda dali: dali.tensors.TensorListCPU(
        [dali.tensors.TensorCPU(np.zeros(2, np.int32)), dali.tensors.TensorCPU(np.zeros(2, np.float32))]
    ),
    list_of_strings=lambda dali: dali.tensors.TensorListCPU(["a"]),
    layout_that_does_not_fit=lambda dali: dali.tensors.TensorCPU(_ROWS, "HWC"),
    list_layout_that_does_not_fit=lambda dali: dali.tensors.TensorListCPU(_ROWS, "HWC"),
    index_beyond=lambda dali: dali.tensors.TensorListCPU(_ROWS)[7],
    negative_beyond=lambda dali: dali.tensors.TensorListCPU(_ROWS)[-7],
    at_beyond=lambda dali: dali.tensors.TensorListCPU(_ROWS).at(7),
    type_of_a_text=lambda dali: dali.types.to_numpy_type("x"),
    type_of_no_type=lambda dali: dali.types.to_numpy_type(dali.types.NO_TYPE),
    type_of_a_string=lambda dali: dali.types.to_numpy_type(dali.types.STRING),
    enum_of_a_text=lambda dali: dali.types.DALIImageType("RGB"),
    unknown_type_name=lambda dali: dali.types.NO_SUCH_TYPE,
    unknown_enum_name=lambda dali: dali.types.DALIImageType.NO_SUCH_TYPE,
)


# -- sources -----------------------------------------------------------------------------------------------------------


def _generator(count: int) -> Callable[[], Any]:
    def made():
        for _ in range(count):
            yield _ROWS

    return made


mistakes(
    "sources",
    none=of_graph(lambda dali: dali.fn.external_source(source=lambda: None)),
    text=source("text"),
    number=source(3),
    too_many=source(np.zeros((5, 3), np.int32)),
    mixed_types=source([np.zeros(2, np.int32), np.zeros(2, np.float32)]),
    mixed_dimensions=source([np.zeros(2, np.int32), np.zeros((2, 2), np.int32)]),
    objects=source([object(), object()]),
    strings=source(np.array(["a", "b"])),
    layout_that_does_not_fit=source(_ROWS, layout="HWC"),
    layout_of_a_number=source(_ROWS, layout=3),
    another_dtype=source(_ROWS, dtype=lambda dali: dali.types.FLOAT),
    dtype_of_a_text=source(_ROWS, dtype="float"),
    another_ndim=source(_ROWS, ndim=3),
    negative_ndim=source(_ROWS, ndim=-1),
    ndim_of_a_text=source(_ROWS, ndim="x"),
    ndim_and_layout=source(_ROWS, ndim=3, layout="AB"),
    unknown_cycle=source([_ROWS], whole=True, cycle="sometimes"),
    cycle_of_a_function=source(lambda: _ROWS, cycle=True),
    source_of_a_number=source(3, whole=True),
    source_of_a_text=source("text", whole=True),
    source_and_name=of_graph(lambda dali: dali.fn.external_source(source=lambda: _ROWS, name=5)),
    too_few_outputs=source((_ROWS,), num_outputs=2),
    no_tuple=source(_ROWS, num_outputs=3),
    outputs_of_a_text=source((_ROWS, _ROWS), num_outputs="x"),
    layouts_without_outputs=source(_ROWS, layout=["A", "B"]),
    three_arguments=source(lambda a, b, c: _ROWS),
    parallel_and_batch_info=source(lambda: _ROWS, parallel=True),
    a_generator_called=source(_generator(1)(), runs=3),
    unknown_option=source(_ROWS, no_such_option=3),
    prefetching_without_parallel=source(_ROWS, prefetch_queue_depth=2),
    an_error=source(lambda: 1 // 0),
    an_end=source(lambda: next(iter(()))),
    a_missing_key=source(lambda: {}["x"]),
    a_missing_file=source(lambda: Path("/no/such/file").read_bytes()),
    an_assertion=source(lambda: (_ for _ in ()).throw(AssertionError("no"))),
    of_a_callback_that_is_called_without_arguments=source(lambda info, more: _ROWS),
    class_without_source=lambda dali: run(dali, lambda: dali.ops.ExternalSource()(3)),
)


# -- Python functions --------------------------------------------------------------------------------------------------


def _called(function: Any, **options: Any) -> Program:
    return _on(lambda dali, x: dali.fn.python_function(x, function=function, **options))


def _fails(error: Exception) -> Program:
    def raising(x: Any) -> Any:
        raise error

    return _called(raising)


mistakes(
    "functions",
    key=_fails(KeyError("x")),
    end=_fails(StopIteration()),
    index=_fails(IndexError("x")),
    assertion=_fails(AssertionError("x")),
    missing_file=_fails(FileNotFoundError(2, "x", "y")),
    missing_module=_fails(ImportError("x")),
    not_implemented=_fails(NotImplementedError("x")),
    returning_None=_called(lambda x: None),
    returning_a_text=_called(lambda x: "text"),
    returning_one=_called(lambda x: x, num_outputs=2),
    returning_strings=_called(lambda x: np.array(["a"])),
    of_a_number=_called(3),
    of_nothing=_on(lambda dali, x: dali.fn.python_function(x)),
    two_arguments=_called(lambda x, y: x),
    no_arguments=_called(lambda: 3),
    layouts_that_do_not_fit=_called(lambda x: x, output_layouts="HWC"),
    few_samples=_called(lambda xs: xs[:1], batch_processing=True),
    no_list=_called(lambda xs: 3, batch_processing=True),
    numpy_error=_called(lambda x: x.reshape(3, 77)),
)


# -- readers -----------------------------------------------------------------------------------------------------------


def _made(name: str, content: bytes | str) -> str:
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def _tar(member: str) -> str:
    path = _made("one.tar", b"")
    with tarfile.open(path, "w") as archive:
        archive.add(_made(member, "content"), member)
    return path


def _empty_folder() -> str:
    folder = _FOLDER / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def _reads(name: str, **options: Any) -> Program:
    def made(dali: Any) -> Any:
        given = {key: value() if callable(value) else value for key, value in options.items()}

        def pipeline():
            module = dali.fn.readers
            *path, last = name.split(".")
            for part in path:
                module = getattr(module, part)
            if last == "tfrecord":
                kinds = dali.tfrecord
                given.setdefault("features", {"x": kinds.FixedLenFeature((), kinds.string, "")})
            found = getattr(module, last)(**given)
            if isinstance(found, dict):
                found = list(found.values())
            return tuple(found) if isinstance(found, (list, tuple)) else found

        return run(dali, pipeline)

    return made


_NOWHERE = "/no/such/folder"
_FILE = {"files": lambda: [_made("a.bin", "a"), _made("b.bin", "b")]}

mistakes(
    "reader of files",
    no_folder=_reads("file", file_root=_NOWHERE),
    empty_folder=_reads("file", file_root=_empty_folder),
    nothing=_reads("file"),
    no_files=_reads("file", files=[]),
    missing_files=_reads("file", files=["/no/such/file.jpg"]),
    no_list=_reads("file", file_list="/no/such/list.txt"),
    empty_list=_reads("file", file_list=lambda: _made("empty.txt", "")),
    bad_list=_reads("file", file_list=lambda: _made("bad.txt", "a b c\nd e f\n")),
    list_of_missing_files=_reads("file", file_list=lambda: _made("missing.txt", "nothing.jpg 3\n")),
    files_and_list=_reads("file", **_FILE, file_list="/x"),
    labels_for_others=_reads("file", **_FILE, labels=[1]),
    labels_without_files=_reads("file", file_root=_empty_folder, labels=[1]),
    labels_of_strings=_reads("file", **_FILE, labels=["a", "b"]),
    files_of_numbers=_reads("file", files=[1, 2]),
    files_of_a_text=_reads("file", files="a.bin"),
    shard_beyond=_reads("file", **_FILE, shard_id=3, num_shards=2),
    negative_shard=_reads("file", **_FILE, shard_id=-1),
    no_shards=_reads("file", **_FILE, num_shards=0),
    negative_shards=_reads("file", **_FILE, num_shards=-2),
    shard_of_a_text=_reads("file", **_FILE, shard_id="x"),
    shuffled_twice=_reads("file", **_FILE, random_shuffle=True, shuffle_after_epoch=True),
    stuck_and_shuffled=_reads("file", **_FILE, stick_to_shard=True, shuffle_after_epoch=True),
    filters_of_nothing=_reads("file", file_root=_empty_folder, file_filters=["*.xyz"]),
    unknown_option=_reads("file", **_FILE, no_such_option=1),
    an_input=lambda dali: run(dali, lambda: dali.fn.readers.file(dali.fn.random.uniform(), file_root="/x")),
    on_the_device=_reads("file", **_FILE, device="gpu"),
)
mistakes(
    "reader",
    coco_without_annotations=_reads("coco", file_root=_empty_folder),
    coco_of_no_file=_reads("coco", file_root=_empty_folder, annotations_file="/no/such.json"),
    coco_of_nonsense=_reads("coco", file_root=_empty_folder, annotations_file=lambda: _made("x.json", "nonsense")),
    coco_of_nothing=_reads("coco", file_root=_empty_folder, annotations_file=lambda: _made("y.json", "{}")),
    tfrecord_of_no_file=_reads("tfrecord", path="/no/such", index_path="/no/such"),
    tfrecord_without_path=_reads("tfrecord"),
    tfrecord_of_nonsense=_reads(
        "tfrecord", path=lambda: _made("t", "nonsense"), index_path=lambda: _made("t.idx", "0 8\n")
    ),
    tfrecord_of_empty_lists=_reads("tfrecord", path=[], index_path=[]),
    tfrecord_without_features=_reads(
        "tfrecord", path=lambda: _made("t", "x" * 40), index_path=lambda: _made("t.idx", "0 40\n"), features={}
    ),
    tfrecord_of_wrong_features=_reads(
        "tfrecord", path=lambda: _made("t", "x" * 40), index_path=lambda: _made("t.idx", "0 40\n"), features=3
    ),
    mxnet_of_no_file=_reads("mxnet", path="/no/such", index_path="/no/such"),
    mxnet_without_path=_reads("mxnet"),
    mxnet_of_nonsense=_reads("mxnet", path=lambda: _made("m", "no"), index_path=lambda: _made("m.idx", "no no\n")),
    webdataset_of_no_file=_reads("webdataset", paths=["/no/such.tar"], ext=["jpg"]),
    webdataset_of_nonsense=_reads("webdataset", paths=lambda: [_made("w.tar", "nonsense" * 100)], ext=["jpg"]),
    webdataset_of_no_paths=_reads("webdataset", paths=[], ext=["jpg"]),
    webdataset_with_unknown_missing=_reads(
        "webdataset", paths=lambda: [_made("w.tar", b"\0" * 10240)], ext=["jpg"], missing_component_behavior="x"
    ),
    webdataset_with_an_extension_twice=_reads(
        "webdataset", paths=lambda: [_tar("0.jpg")], ext=["jpg", "jpg"], missing_component_behavior="skip"
    ),
    numpy_of_no_file=_reads("numpy", files=["/no/such.npy"]),
    numpy_of_no_folder=_reads("numpy", file_root=_NOWHERE),
    numpy_of_nonsense=_reads("numpy", files=lambda: [_made("n.npy", "nonsense")]),
    numpy_of_nothing=_reads("numpy"),
    caffe_of_no_file=_reads("caffe", path=_NOWHERE),
    caffe2_of_no_file=_reads("caffe2", path=_NOWHERE),
    sequence_of_no_folder=_reads("sequence", file_root=_NOWHERE, sequence_length=2),
    sequence_without_length=_reads("sequence", file_root=_empty_folder),
    video_of_no_file=_reads("video", filenames=["/no/such.mp4"], sequence_length=2, device="cpu"),
    nemo_of_no_file=_reads("nemo_asr", manifest_filepaths=["/no/such.json"]),
    nemo_of_nonsense=_reads("nemo_asr", manifest_filepaths=lambda: [_made("n.json", "nonsense")]),
    unknown=_reads("no_such_reader"),
    names_twice=lambda dali: run(
        dali,
        lambda: (
            dali.fn.readers.file(files=[_made("a.bin", "a")], name="R")[0],
            dali.fn.readers.file(files=[_made("a.bin", "a")], name="R")[0],
        ),
    ),
)
mistakes(
    "feature of TFRecord",
    default_of_another_type=lambda dali: dali.tfrecord.FixedLenFeature([1], dali.tfrecord.int64, 1.0),
    integer_for_a_float=lambda dali: dali.tfrecord.VarLenFeature(dali.tfrecord.float32, 1),
    bytes_for_a_string=lambda dali: dali.tfrecord.FixedLenFeature([], dali.tfrecord.string, b""),
    integer_for_a_shape=lambda dali: dali.tfrecord.FixedLenFeature(4, dali.tfrecord.int64, 0),
    no_default=lambda dali: dali.tfrecord.VarLenFeature(dali.tfrecord.int64),
)
mistakes(
    "decoder",
    nonsense=_on(lambda dali, x: dali.fn.decoders.image(x), np.full((2, 30), 7, np.uint8)),
    nothing=_on(lambda dali, x: dali.fn.decoders.image(x), [np.zeros(0, np.uint8)] * 2),
    numbers=_on(lambda dali, x: dali.fn.decoders.image(x), np.zeros((2, 30), np.float32)),
    images=_on(lambda dali, x: dali.fn.decoders.image(x), np.zeros((2, 3, 3, 3), np.uint8)),
    audio_of_nonsense=_on(lambda dali, x: dali.fn.decoders.audio(x)[0], np.full((2, 30), 7, np.uint8)),
    shape_of_nonsense=_on(lambda dali, x: dali.fn.peek_image_shape(x), np.full((2, 30), 7, np.uint8)),
    unknown_type=_on(lambda dali, x: dali.fn.decoders.image(x, output_type="RGB"), np.full((2, 30), 7, np.uint8)),
    numpy_of_nonsense=_on(lambda dali, x: dali.fn.decoders.numpy(x), np.full((2, 30), 7, np.uint8)),
    inflate_of_nonsense=_on(lambda dali, x: dali.fn.decoders.inflate(x, shape=[30]), np.full((2, 30), 7, np.uint8)),
)
