"""Programs for DALI that fail in both libraries: the class of the error is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compatibility.programs import Program, counted, on, run


def _expecting(**options: Any) -> Program:
    def made(dali: Any) -> Any:
        given = {name: value(dali) if callable(value) else value for name, value in options.items()}
        return run(dali, lambda: (dali.fn.random.uniform(), dali.fn.random.uniform()), **given)

    return made


def _parallel(dali: Any) -> Any:
    def pipeline():
        return dali.fn.external_source(source=lambda info: np.int32(info.idx_in_batch), parallel=True, batch=False)

    return run(dali, pipeline, py_num_workers=None)


def _twice_a_name(dali: Any) -> Any:
    return run(dali, lambda: (dali.fn.random.uniform(name="a"), dali.fn.random.normal(name="a")))


def _name_from_a_branch(dali: Any) -> Any:
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline() -> Any:
        name = "a"
        if dali.fn.random.coin_flip(probability=0.5):
            name = "b"
        return dali.fn.random.uniform(name=name)

    return pipeline()


def _tensors_of_two_layouts(dali: Any) -> Any:
    rows = [dali.tensors.TensorCPU(np.zeros((2, 3), np.uint8), layout) for layout in ("HW", "WC")]
    return run(dali, lambda: dali.fn.external_source(source=lambda: rows))


def _no_graph(dali: Any) -> Any:
    dali.Pipeline(2, 1, None).build()


def _no_schema(dali: Any) -> Any:
    dali.backend.GetSchema("NoSuchThing")


def _ragged(dali: Any) -> Any:
    ndd = dali.experimental.dynamic
    return np.asarray(ndd.tensor(ndd.batch([np.zeros(2, np.int32), np.zeros(3, np.int32)])))


def _wrong_crop(dali: Any) -> Any:
    ndd = dali.experimental.dynamic
    with ndd.EvalMode.deferred:
        cut = ndd.crop(ndd.tensor(counted(4, 4, 1), layout="HWC"), crop=[9, 9])
    return np.asarray(cut)


def _checkpoint(method: str, *arguments: Any) -> Program:
    return lambda dali: getattr(dali.experimental.dynamic.checkpoint.Checkpoint(), method)(*arguments)


_MATRIX = np.zeros((2, 3), np.uint8)


class _Counter:
    def get_state(self, **_: Any) -> int:
        return 3

    def set_state(self, value: Any, **_: Any) -> None:
        pass


def _loaded_and_never_registered(dali: Any) -> None:
    kind = dali.experimental.dynamic.checkpoint.Checkpoint
    first, second = kind(), kind()
    first.register(_Counter(), "counter")
    first.collect()
    second.deserialize(first.serialize())
    second.restore()


def _photo(function: Any) -> Program:
    return on(counted(2, 4, 5, 3), "HWC", function)


def _points(function: Any) -> Program:
    return on(np.ones((2, 4, 3), np.float32), None, function)


def _nothing(dali: Any) -> Any:
    return dali.fn.external_source(source=lambda: [np.zeros(0, np.float32)] * 2)


def _no_such_input(dali: Any) -> None:
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(name="a"))(batch_size=2, num_threads=1, device_id=None)
    pipe.build()
    pipe.feed_input("b", np.zeros((2, 2), np.int32))


def _another_layout(dali: Any) -> None:
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(name="a", layout="HW"))(
        batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1
    )
    pipe.build()
    pipe.feed_input("a", np.zeros((2, 3, 4), np.uint8), layout="WC")
    pipe.run()


def _not_called(method: str) -> Program:
    return lambda dali: getattr(dali.pipeline_def(lambda: dali.fn.random.uniform()), method)()


def _list_of(*layouts: str) -> Program:
    def made(dali: Any) -> Any:
        return dali.tensors.TensorListCPU([dali.tensors.TensorCPU(_MATRIX, layout) for layout in layouts])

    return made


def _cropped(**options: Any) -> Program:
    boxes = np.float32([[[0.1, 0.1, 0.5, 0.5]]] * 2)
    return on(boxes, None, lambda dali, x: tuple(dali.fn.random_bbox_crop(x, input_shape=[100, 90], **options)))


def _built(function: Any) -> Program:
    """A pipeline that is built and has what a function returns for DALI, an image and a predicate."""

    def made(dali: Any) -> None:
        def pipeline():
            image = dali.fn.external_source(source=lambda: counted(2, 4, 5, 3), layout="HWC")
            return function(dali, image, dali.fn.random.coin_flip(dtype=dali.types.BOOL))

        dali.pipeline_def(pipeline)(batch_size=2, num_threads=1, device_id=None).build()

    return made


def _ran(function: Any) -> Program:
    """A pipeline that runs and has what a function returns for DALI and an image."""

    def made(dali: Any) -> None:
        run(dali, lambda: function(dali, dali.fn.external_source(source=lambda: counted(2, 4, 5, 3), layout="HWC")))

    return made


def _source(source: Any) -> Program:
    return lambda dali: run(dali, lambda: dali.fn.external_source(source=source), runs=2)


MISTAKES: dict[str, Program] = {
    "a source with another type": _source([np.zeros((2, 3), np.uint8), np.zeros((2, 3), np.float32)]),
    "a source with another number of dimensions": _source([np.zeros((2, 3), np.uint8), np.zeros((2, 3, 1), np.uint8)]),
    "a source with any number of arguments": _source(lambda *numbers: np.zeros((2, 3), np.uint8)),
    "a node as name": _built(lambda dali, x, p: dali.fn.flip(x, name=x)),
    "a node as name of an operator object": _built(lambda dali, x, p: dali.ops.Flip(name=x)(x)),
    "a node as name in the call of an operator object": _built(lambda dali, x, p: dali.ops.Flip()(x, name=x)),
    "a node as name of a source": _built(lambda dali, x, p: dali.fn.external_source(source=lambda: [], name=x)),
    "a node as name of random numbers": _built(lambda dali, x, p: dali.fn.random.uniform(name=x)),
    "a list with a node as name": _built(lambda dali, x, p: dali.fn.flip(x, name=[x])),
    "an argument of the constructor in the call": _built(
        lambda dali, x, p: dali.ops.Crop(crop=[1, 1])(x, crop=[1, 1]),
    ),
    "an argument of the constructor as a node in the call": _built(
        lambda dali, x, p: dali.ops.Flip(horizontal=1)(x, horizontal=dali.fn.random.coin_flip()),
    ),
    "a device in the constructor and in the call": _built(
        lambda dali, x, p: dali.ops.Flip(device="cpu")(x, device="cpu")
    ),
    "infinity for an integer": _built(lambda dali, x, p: dali.fn.flip(x, horizontal=float("inf"))),
    "infinity for an enumeration": _built(lambda dali, x, p: dali.fn.cast(x, dtype=float("inf"))),
    "infinity for an axis": _built(lambda dali, x, p: dali.fn.transpose(x, perm=float("-inf"))),
    "infinity in a list of integers": _built(lambda dali, x, p: dali.fn.random.uniform(shape=[float("inf")])),
    "elements of what is no sequence": _ran(lambda dali, x: dali.fn.element_extract(x, element_map=[0])),
    "order of what is no sequence": _ran(lambda dali, x: dali.fn.sequence_rearrange(x, new_order=[0])),
    "one extent of a crop as a node": _ran(
        lambda dali, x: dali.fn.crop(x, crop=dali.types.Constant(np.float32([1]), device="cpu")),
    ),
    "no extents of a crop as a node": _ran(
        lambda dali, x: dali.fn.crop(x, crop=dali.fn.external_source(lambda: [np.zeros(0, np.float32)] * 2)),
    ),
    "two letters for the axis of cat": _ran(lambda dali, x: dali.fn.cat(x, x, axis_name="HW")),
    "an empty name of the axis of cat": _ran(lambda dali, x: dali.fn.cat(x, x, axis_name="")),
    "a source dimension that does not exist": _ran(lambda dali, x: dali.fn.reshape(x, shape=[-1], src_dims=[5])),
    "a source dimension that does not exist, of bytes": _ran(
        lambda dali, x: dali.fn.reinterpret(x, shape=[-1], src_dims=[-2]),
    ),
    "an empty folder name": _ran(lambda dali, x: tuple(dali.fn.readers.file(file_root=""))),
    "no parts to merge": _built(lambda dali, x, p: dali.fn._conditional.merge(predicate=p)),
    "one part to merge": _built(lambda dali, x, p: dali.fn._conditional.merge(x, predicate=p)),
    "three parts to merge": _built(lambda dali, x, p: dali.fn._conditional.merge(x, x, x, predicate=p)),
    "parts to merge without predicate": _built(lambda dali, x, p: dali.fn._conditional.merge(x, x)),
    "nothing to split": _built(lambda dali, x, p: tuple(dali.fn._conditional.split(predicate=p))),
    "two inputs to split": _built(lambda dali, x, p: tuple(dali.fn._conditional.split(x, x, predicate=p))),
    "an input to split without predicate": _built(lambda dali, x, p: tuple(dali.fn._conditional.split(x))),
    "nothing to negate": _built(lambda dali, x, p: dali.fn._conditional.not_()),
    "two inputs to negate": _built(lambda dali, x, p: dali.fn._conditional.not_(p, p)),
    "a source with -1 outputs": _built(
        lambda dali, x, p: tuple(dali.fn.external_source(source=lambda: [], num_outputs=-1))
    ),
    "a source with 0 outputs": _built(
        lambda dali, x, p: tuple(dali.fn.external_source(source=lambda: [], num_outputs=0))
    ),
    "a function with -1 outputs": _built(
        lambda dali, x, p: tuple(dali.fn.python_function(x, function=len, num_outputs=-1))
    ),
    "archives without extensions": _built(lambda dali, x, p: tuple(dali.fn.readers.webdataset(paths=["a"], ext=[]))),
    "a reader of nothing": _built(
        lambda dali, x, p: tuple(dali.fn.readers.caffe(path="a", image_available=False, label_available=False))
    ),
    "data for no input": _no_such_input,
    "data with another layout than the declared one": _another_layout,
    "run of a function that was not called": _not_called("run"),
    "build of a function that was not called": _not_called("build"),
    "list of tensors with two layouts": _list_of("HW", "WC"),
    "a window of fixed extents and their scaling": _cropped(crop_shape=[20, 30], scaling=[0.5, 1.0]),
    "a window of fixed extents and their ratio": _cropped(crop_shape=[20, 30], aspect_ratio=[0.5, 2.0]),
    "a threshold above 1": _cropped(thresholds=[0.5, 1.5]),
    "a negative threshold": _cropped(thresholds=[-0.5]),
    "the axis of cat twice": _photo(lambda dali, x: dali.fn.cat(x, x, axis=0, axis_name="H")),
    "two axes of cat": _photo(lambda dali, x: dali.fn.cat(x, x, axis=0, axis_name="W")),
    "coordinates of some axes among all": _photo(lambda dali, x: dali.fn.slice(x, start=[1, 1], axes=[])),
    "output_dtype of a text": _expecting(output_dtype="x"),
    "output_dtype without a type": _expecting(output_dtype=lambda dali: dali.types.NO_TYPE),
    "negative output_ndim": _expecting(output_ndim=-1),
    "output_ndim of a text": _expecting(output_ndim="x"),
    "output_layout of a number": _expecting(output_layout=3),
    "one output_dtype for two": _expecting(output_dtype=lambda dali: [dali.types.FLOAT]),
    "another output_dtype": _expecting(output_dtype=lambda dali: dali.types.INT32),
    "parallel without workers": _parallel,
    "a name twice": _twice_a_name,
    "a string that depends on a condition": _name_from_a_branch,
    "tensors of two layouts": _tensors_of_two_layouts,
    "no graph": _no_graph,
    "no schema": _no_schema,
    "a ragged batch as a tensor": _ragged,
    "a crop that does not fit": _wrong_crop,
    "state of nothing": _checkpoint("get_state", "x"),
    "empty name of a state": _checkpoint("register", _Counter(), ""),
    "no checkpoint": _checkpoint("deserialize", "{}"),
    "loaded and never registered": _loaded_and_never_registered,
    "an object and background": _photo(
        lambda dali, x: dali.fn.segmentation.random_object_bbox(
            dali.fn.cast(x, dtype=dali.types.INT32), background=2, classes=[2]
        )
    ),
    "unknown argument": _photo(lambda dali, x: dali.fn.flip(x, horizontl=1)),
    "wrong type of an argument": _photo(lambda dali, x: dali.fn.flip(x, horizontal="yes")),
    "unknown policy": _photo(lambda dali, x: dali.fn.crop(x, crop=[7, 3], out_of_bounds_policy="foo")),
    "crop without pixels": _photo(lambda dali, x: dali.fn.crop(x, crop=[7, 3])),
    "layout that normalizing does not know": on(
        counted(2, 4, 5, 3), "ABC", lambda dali, x: dali.fn.crop_mirror_normalize(x, crop=[2, 2])
    ),
    "names of axes without layout": on(
        counted(2, 4, 5, 3), None, lambda dali, x: dali.fn.expand_dims(x, axes=[0], new_axis_names="F")
    ),
    "a translation without values": lambda dali: run(dali, lambda: dali.fn.transforms.translation(offset=[])),
    "a translation without values in each sample": lambda dali: run(
        dali, lambda: dali.fn.transforms.translation(offset=_nothing(dali))
    ),
    "a matrix without values": _points(lambda dali, x: dali.fn.coord_transform(x, M=[])),
    "a matrix and a translation without values": _points(lambda dali, x: dali.fn.coord_transform(x, MT=[])),
    "an axis twice": _photo(lambda dali, x: dali.fn.squeeze(x, axes=[0, 0])),
    "an axis of a slice twice": _photo(lambda dali, x: dali.fn.slice(x, start=[0, 1], axes=[0, -3])),
    "axes of a slice and their names": _photo(lambda dali, x: dali.fn.slice(x, start=[1], axes=[0], axis_names="W")),
    "an axis to pad twice": _photo(lambda dali, x: dali.fn.pad(x, axes=[0, 0], shape=[6, 7])),
    "a size without an order": _photo(lambda dali, x: dali.fn.resize(x, size={3, 2})),
    "no elements to extract": _built(lambda dali, x, chosen: dali.fn.element_extract(x, element_map=[])),
    "type of a constant as a text": _photo(lambda dali, x: x + dali.types.Constant([1, 2, 3], dtype="float")),
    "sets of different sizes": _photo(lambda dali, x: dali.fn.cat([x, x], [x])),
    "other types of anchor and shape": _photo(
        lambda dali, x: dali.fn.slice(x, np.float32([0.5]), np.int32([1]), axes=[0])
    ),
}
