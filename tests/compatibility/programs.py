"""Small programs for DALI that run in both libraries: each takes the library and returns outputs, strings or numbers.

They are what programs for DALI stumbled over in dalify. `test_programs.py` runs them.
"""

# ruff: noqa: SIM108 -- the programs are what is tested

from __future__ import annotations

import collections.abc
import ctypes
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def cases(prefix: str, **programs: Program) -> None:
    PROGRAMS.update({f"{prefix}: {name}": made for name, made in programs.items()})


def run(dali: Any, function: Callable[[], Any], batch_size: int = 2, runs: int = 1, **options: Any) -> Any:
    pipe = dali.pipeline_def(function)(batch_size=batch_size, num_threads=1, device_id=None, **options)
    pipe.build()
    outputs: Any = ()
    for _ in range(runs):
        outputs = pipe.run()
    return outputs


def counted(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape)), dtype=np.uint8).reshape(shape)


def on(data: Any, layout: str | None, function: Callable[[Any, Any], Any], **options: Any) -> Program:
    """A program of one function of one external source."""

    def made(dali: Any) -> Any:
        def pipeline() -> Any:
            return function(dali, dali.fn.external_source(source=lambda: data, layout=layout))

        return run(dali, pipeline, len(data), **options)

    return made


PHOTO = counted(2, 6, 5, 3)

# -- pipelines and graph values ----------------------------------------------------------------------------------------


@program
def split_and_merge(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: counted(4, 3))
        chosen = dali.fn.external_source(source=lambda: np.array([True, False, False, True]))
        true, false = dali.fn._conditional.split(x, predicate=chosen)
        inverted = dali.fn._conditional.not_(chosen)
        return dali.fn._conditional.merge(true + 1, dali.fn.cat(false, false)[:3] * 2, predicate=chosen), inverted

    return run(dali, pipeline, 4)


@program
def notes_in_branches(dali):
    seen: list[str] = []

    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 5]))
        if x > 2:
            seen.append("large")
            y = x + 1
        else:
            seen.append("small")
            y = x
        return y

    return [*run(dali, pipeline, enable_conditionals=True), seen]


@program
def nodes_are_not_iterable(dali):
    found = []

    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 5]), name="source")
        found.extend([isinstance(x, collections.abc.Iterable), x.name, x.device, x.index])
        return x

    return [*run(dali, pipeline), found]


@program
def variadic_keywords_are_refused_late(dali):
    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline(**options):
        return dali.fn.random.uniform()

    try:
        pipeline()
    except TypeError:
        return "refused"
    return "taken"


@program
def arguments_by_position(dali):
    class Old(dali.Pipeline):
        def __init__(self):
            super().__init__(2, 1, None, 12, True, 3, True, 0, False)

        def define_graph(self):
            return dali.types.Constant(np.int32([1]), device="cpu"), []

    pipe = Old()
    pipe.build()
    facts = (pipe.seed, pipe.prefetch_queue_depth, pipe.max_batch_size, pipe.exec_async, pipe.exec_dynamic)
    return [*pipe.run(), facts, (pipe.stream_policy, pipe.concurrency, pipe.py_num_workers)]


@program
def queue_sizes(dali):
    pipe = dali.Pipeline(2, 1, None, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}, exec_dynamic=False)
    return [pipe.cpu_queue_size, pipe.gpu_queue_size, pipe.exec_separated, pipe.exec_dynamic]


@program
def first_schedule_prefetches(dali):
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(source=iter(counted(5, 2, 1))))(
        batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=3
    )
    pipe.build()
    pipe.schedule_run()
    seen = [np.array(pipe.outputs()[0].as_array()) for _ in range(3)]
    pipe.schedule_run()
    return [*seen, pipe.outputs()[0].as_array().copy()]


@program
def elements_of_samples_of_different_shapes(dali):
    samples = [np.arange(6, dtype=np.int16).reshape(2, 3), np.arange(4, dtype=np.int16)[:, None]]

    def pipeline():
        return dali.fn.external_source(source=lambda: samples, layout="HW") + np.int16(1)

    (found,) = run(dali, pipeline)
    target = np.zeros(12, np.int16)
    found.copy_to_external(ctypes.c_void_p(target.ctypes.data))
    reshaped = [found.as_reshaped_tensor(shape) for shape in ([10], [1, 2, 5])]
    return [target, *((tensor.layout(), np.array(tensor)) for tensor in reshaped)]


@program
def modules_of_the_plugin(dali):
    plugin = importlib.import_module(f"{dali.__name__}.plugin.pytorch")
    return [plugin.torch_utils.to_torch_tensor.__name__, plugin.experimental.proxy.DALIServer.__name__]


@program
def input_sets(dali):
    def pipeline():
        a = dali.fn.external_source(source=lambda: counted(2, 2, 3, 1), layout="HWC")
        b = a + np.uint8(100)
        angles = dali.fn.external_source(source=lambda: np.float32([0, 90]))
        flipped, joined = dali.ops.Flip()([a, b]), dali.ops.Cat()([a, b], [b, a])
        return (*flipped, *joined, *dali.fn.cat([a, b], a), *dali.ops.Rotate()([a, b], angle=angles))

    return run(dali, pipeline)


@program
def input_sets_of_several_outputs(dali):
    """One list of results for each output."""

    def pipeline():
        boxes = dali.fn.external_source(source=lambda: [np.float32([[0, 0, 1, 1]])] * 2)
        labels = dali.fn.external_source(source=lambda: [np.int32([1])] * 2)
        crop = dali.ops.RandomBBoxCrop(
            thresholds=[0.0], aspect_ratio=[1.0, 1.0], scaling=[1.0, 1.0], bbox_layout="xyXY", seed=3
        )
        anchors, shapes, found, kept = crop([boxes, boxes], [labels, labels])
        return (*anchors, *shapes, *found, *kept)

    return run(dali, pipeline)


@program
def expected_outputs_are_serialized(dali):
    def pipeline():
        return dali.fn.random.uniform(), dali.types.Constant(np.float32([1, 2]), device="cpu")

    pipe = dali.pipeline_def(pipeline)(
        batch_size=2, num_threads=1, device_id=None, output_dtype=dali.types.FLOAT, output_ndim=[0, None]
    )
    other = dali.Pipeline.deserialize(pipe.serialize())
    return [str(other.output_dtype()), other.output_ndim()]


@program
def unused_outputs_of_sources(dali):
    class Old(dali.Pipeline):
        def __init__(self):
            super().__init__(2, 1, None)
            rows = (np.int32([1, 2]), np.int32([3, 4]), np.int32([5, 6]))
            self.source = dali.ops.ExternalSource(source=lambda: rows, num_outputs=3)

        def define_graph(self):
            _, second, _ = self.source()
            return second

    pipe = Old()
    pipe.build()
    return pipe.run()


@program
def layouts_set_later(dali):
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(name="x"))(
        batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1
    )
    pipe.build()
    found = []
    for layout in (None, "XY"):
        pipe.feed_input("x", counted(2, 2, 3), layout=layout)
        found += pipe.run()
    return found


@program
def pipelines_without_workers(dali):
    return run(dali, lambda: dali.fn.external_source(source=lambda: np.int32([1, 2])), py_num_workers=None)


@program
def prefetch_by_hand(dali):
    pipe = dali.pipeline_def(lambda: dali.types.Constant(np.float32([1]), device="cpu"))(
        batch_size=1, num_threads=1, device_id=None
    )
    pipe.build()
    pipe._prefetch()
    found = []
    for _ in range(3):
        found += pipe.share_outputs()
        pipe.release_outputs()
        pipe.schedule_run()
    return found


@program
def equal_draws(dali):
    def pipeline():
        uniform = dali.fn.random.uniform
        one, same = uniform(seed=3, shape=[4]), uniform(seed=3, shape=[4])
        return one - same, one[0] - same[0], uniform(seed=3, name="other", shape=[4]) - one

    return run(dali, pipeline, runs=3)


@program
def strings(dali):
    def pipeline():
        return (
            dali.fn.external_source(source=lambda: counted(2, 2, 3), layout="HW"),
            dali.fn.external_source(source=lambda: [counted(2, 3), counted(3, 3)]),
            dali.fn.external_source(source=lambda: np.float32([1, 2])),
        )

    outputs = run(dali, pipeline)
    constants = [dali.types.Constant(value) for value in (10, 1.5, True)]
    return [
        [str(output) for output in outputs],
        [repr(output) for output in outputs],
        [str(outputs[0][0]), repr(outputs[0][0]), repr(outputs[0].as_tensor())],
        [str(item) for item in constants] + [repr(item) for item in constants],
    ]


@program
def strings_of_large_batches(dali):
    def pipeline():
        return (
            dali.fn.external_source(source=lambda: np.zeros((40, 20, 30), np.float32), layout="HW"),
            dali.fn.external_source(source=lambda: [np.zeros((i % 7 + 1, 3), np.int32) for i in range(40)]),
            dali.fn.external_source(source=lambda: np.zeros((40, 0, 3), np.uint8)),
        )

    return [str(output) for output in run(dali, pipeline, 40)]


@program
def typed_constants(dali):
    constant = dali.types.Constant
    same = constant(3) == constant(3), constant(3) == constant(3.0), constant(3) != constant(4)
    return [int(constant(3)), bool(constant(0)), float(constant(2.5)), same, str(constant(np.float32(2)))]


@program
def operator_instances(dali):
    resize = dali.ops.Resize(size=[2, 2], device="cpu")
    facts = (resize.device, resize.schema_name, resize.preserve, resize.schema.Name(), hasattr(resize, "spec"))
    return [facts, type(resize).__name__]


@program
def memory_statistics(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([1, 2]))
        return dali.fn.cast(x, dtype=dali.types.FLOAT, name="converted")

    pipe = dali.pipeline_def(pipeline)(
        batch_size=2, num_threads=1, device_id=None, enable_memory_stats=True, exec_dynamic=False
    )
    pipe.build()
    pipe.run()
    return [sorted(pipe.executor_statistics()["CPU_converted"].items()), pipe.external_source_shm_statistics()]


# -- operators ---------------------------------------------------------------------------------------------------------

for _name, _edges in {
    "line": ([2.0, 0.0], [2.0, 5.0]),
    "column": ([0.0, 3.0], [6.0, 3.0]),
    "point": ([2.0, 3.0], [2.0, 3.0]),
    "narrow": ([2.0, 0.0], [2.0005, 5.0]),
    "outside": ([7.0, 0.0], [7.0, 5.0]),
}.items():
    for _kind in ("INTERP_LINEAR", "INTERP_NN", "INTERP_CUBIC"):

        def _resized(dali, x, edges=_edges, kind=_kind):
            options = {"roi_start": edges[0], "roi_end": edges[1], "interp_type": getattr(dali.types, kind)}
            side = "resize_y" if edges[0][1] == edges[1][1] else "resize_x"  # along the other the region is 0.001 wide
            return dali.fn.resize(x, size=[3, 4], antialias=False, **options), dali.fn.resize(x, **{side: 3}, **options)

        cases("resize of a region", **{f"{_name} {_kind}": on(PHOTO, "HWC", _resized)})

for _shape in ((2, 0, 4, 3), (2, 4, 0, 3), (2, 0, 0, 3), (2, 4, 4, 0)):
    for _size in ({"size": [2, 3]}, {"resize_x": 2}, {"resize_shorter": 2}, {"size": [2, 3], "mode": "not_larger"}):
        cases(
            "resize of nothing",
            **{
                f"{_shape} {_size}": on(
                    np.zeros(_shape, np.uint8), "HWC", lambda dali, x, size=_size: dali.fn.resize(x, **size)
                )
            },
        )

_ROW = np.float32([[[1, 2, 3]], [[4, 5, 6]]])
cases(
    "normalize without degrees of freedom",
    mean=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, axes=[0], mean=1, ddof=2, epsilon=0.25)),
    without_epsilon=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, axes=[0], mean=1, ddof=2)),
    rows=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, axes=[1], ddof=5, epsilon=0.25)),
    whole=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, ddof=3, epsilon=0.25)),
    batch=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, axes=[0], batch=True, ddof=2, epsilon=0.25)),
    stddev=on(_ROW, None, lambda dali, x: dali.fn.normalize(x, axes=[0], stddev=2.0, ddof=3, epsilon=0.25)),
)

for _policy in ("reflect_101", "reflect_1001", "edge", "clamp", "wrap", "const", "constant", "reflect", "pad"):
    cases(
        f"out of bounds, {_policy}",
        crop=on(
            counted(2, 4, 5, 1),
            "HWC",
            lambda dali, x, policy=_policy: dali.fn.crop(
                x, crop=[7, 3], out_of_bounds_policy=policy, fill_values=[9.0]
            ),
        ),
        volume=on(
            counted(2, 2, 4, 3, 1),
            "DHWC",
            lambda dali, x, policy=_policy: dali.fn.crop(
                x, crop=[3, 6, 4], out_of_bounds_policy=policy, fill_values=[9.0]
            ),
        ),
        sequence=on(
            counted(2, 2, 4, 3, 1),
            "FHWC",
            lambda dali, x, policy=_policy: dali.fn.crop(x, crop=[6, 4], out_of_bounds_policy=policy),
        ),
        slice=on(
            counted(2, 4, 5, 1),
            "HWC",
            lambda dali, x, policy=_policy: dali.fn.slice(
                x, start=[-1, -2], end=[6, 4], axes=[0, 1], out_of_bounds_policy=policy, fill_values=[9.0]
            ),
        ),
    )
cases(
    "out of bounds, with a mean",
    const=on(
        counted(2, 2, 4, 3, 1),
        "DHWC",
        lambda dali, x: dali.fn.crop_mirror_normalize(
            x, crop=[3, 6, 4], out_of_bounds_policy="const", fill_values=[9.0], output_layout="DHWC"
        ),
    ),
)


def waves(height: int, width: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 255, (1, height, width, 3), np.uint8)


cases(
    "displaced pixels",
    water=on(waves(300, 400), "HWC", lambda dali, x: dali.fn.water(x)),
    sphere=on(waves(300, 400), "HWC", lambda dali, x: dali.fn.sphere(x)),
)


@program
def rotated_boxes(dali):
    def pipeline():
        boxes = dali.fn.external_source(
            source=lambda: [
                np.float32([[0.1, 0.2, 0.5, 0.6], [0.3, 0.3, 0.9, 0.8]]),
                np.float32([[0.2, 0.2, 0.4, 0.4]]),
            ]
        )
        labels = dali.fn.external_source(source=lambda: [np.int32([1, 2]), np.int32([3])])
        outputs = []
        for shape, layout in (([100, 200], "HW"), ([100, 200, 3], "HW"), ([100, 200, 3], "HWC"), ([100, 200], "HWC")):
            for mode in ("expand", "halfway", "fixed"):
                for size in ({}, {"size": [50, 60]}, {"keep_size": True}):
                    outputs += dali.fn.bbox_rotate(
                        boxes, labels, angle=30.0, input_shape=shape, shape_layout=layout, mode=mode, **size
                    )
        return tuple(outputs)

    return run(dali, pipeline)


for _layout, _shape in (("A", (1,)), ("AB", (1, 1)), ("AB", (1, 2)), ("ABC", (1, 1, 1)), (None, ()), (None, (1,))):
    for _options in ({}, {"axis_name": "O"}, {"axis": 0}):
        if _layout is None and _shape and _options == {"axis": 0}:
            continue
        _classes = np.int32(np.arange(2 * int(np.prod(_shape))).reshape(2, *_shape) % 4)
        cases(
            "one_hot",
            **{
                f"{_layout} {_shape} {_options}": on(
                    _classes,
                    _layout,
                    lambda dali, x, options=_options: dali.fn.one_hot(x, num_classes=4, **options),
                )
            },
        )

for _type in ("FLOAT16", "FLOAT", "UINT8", "INT64", "FLOAT64"):
    cases(
        "lookup_table",
        **{
            _type: on(
                np.int32([[1, 2, 3], [4, 1, 0]]),
                None,
                lambda dali, x, dtype=_type: dali.fn.lookup_table(
                    x, keys=[1, 2, 3], values=[1.5, 20.7, 3.0], default_value=7.0, dtype=getattr(dali.types, dtype)
                ),
            )
        },
    )


@program
def enumerations_as_data(dali):
    def pipeline():
        photo = dali.fn.external_source(source=lambda: counted(2, 4, 5, 3), layout="HWC")
        kinds = dali.types
        drawn = dali.fn.random.choice([kinds.INTERP_NN, kinds.INTERP_NN], seed=3)
        constant = dali.types.Constant(kinds.INTERP_NN)
        resized = [dali.fn.resize(photo, size=[2, 2], interp_type=kind, antialias=False) for kind in (drawn, constant)]
        return (*resized, dali.fn.cast(drawn, dtype=kinds.INT32), dali.fn.cast(constant, dtype=kinds.INT32))

    return run(dali, pipeline)


@program
def types_of_enumerations(dali):
    outputs = run(dali, lambda: dali.fn.random.choice([dali.types.INTERP_LINEAR, dali.types.INTERP_NN]))
    return str(outputs[0].dtype)


@program
def constants_as_arguments(dali):
    constant = dali.types.Constant

    def pipeline():
        x = dali.fn.external_source(source=lambda: counted(2, 3, 4, 1), layout="HWC")
        return (
            dali.fn.rotate(x, angle=constant(90.0)),
            dali.fn.slice(x, start=constant(1), end=constant(2), axes=[0]),
            dali.fn.slice(x, constant(1), constant(1), axes=[0]),
        )

    return run(dali, pipeline)


@program
def axes_as_graph_values(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: counted(2, 3, 4))
        axes = dali.fn.external_source(source=lambda: np.int32([[0], [1]]))
        return dali.fn.slice(x, start=[1], end=[2], axes=axes)

    return run(dali, pipeline)


cases(
    "empty lists of axes",
    expand_dims=on(counted(2, 3, 4), "HW", lambda dali, x: dali.fn.expand_dims(x, axes=[], new_axis_names="")),
    slice=on(counted(2, 3, 4), "HW", lambda dali, x: dali.fn.slice(x, start=[], end=[], axes=[])),
    slice_names=on(counted(2, 3, 4), "HW", lambda dali, x: dali.fn.slice(x, start=[], end=[], axis_names="")),
    squeeze=on(counted(2, 1, 4), "HW", lambda dali, x: dali.fn.squeeze(x, axes=[])),
    squeeze_beyond=on(counted(2, 1, 4, 1), None, lambda dali, x: dali.fn.squeeze(x, axes=[0, 5])),
)

for _relative, _sources in (
    ([1.0, -1.0], None),
    ([1.0, -1.0], [0, 1]),
    ([1.0, -1.0], [1, -1]),
    ([1.0, 1.0, -1.0], [2, 0, 1]),
    ([-1.0, 2.0], [1, 0]),
    ([-1.0], None),
    ([0.5, 6.0], None),
    ([1.0, 1.0, 1.0, -1.0], None),
):
    cases(
        "reshape",
        **{
            f"{_relative} {_sources}": on(
                counted(2, 2, 4, 3),
                None,
                lambda dali, x, relative=_relative, sources=_sources: dali.fn.reshape(
                    x, rel_shape=relative, **({} if sources is None else {"src_dims": sources})
                ),
            )
        },
    )


@program
def joined_with_nothing(dali):
    def pipeline():
        full = dali.fn.external_source(source=lambda: np.int32([[[1, 2]], [[3, 4]]]))
        empty = dali.fn.external_source(source=lambda: np.zeros((2, 0, 3), np.int32))
        cat = dali.fn.cat
        return cat(full, empty), cat(empty, full), cat(empty, full, axis=1), cat(empty, empty)

    return run(dali, pipeline)


@program
def frames_of_their_own(dali):
    def points(frames):
        return np.float32(np.arange(frames * 6).reshape(frames, 3, 2))

    def matrices(frames):
        return np.float32([np.eye(2) * (i + 1) for i in range(frames)])

    def always(batch):
        return lambda: batch

    def pipeline():
        x = dali.fn.external_source(source=always([points(2), points(3)]), layout="F**")
        outputs = []
        for given in ([matrices(2), matrices(3)], [matrices(1), matrices(1)]):
            matrix = dali.fn.per_frame(dali.fn.external_source(source=always(given)))
            outputs.append(dali.fn.coord_transform(x, M=matrix))
        single = dali.fn.external_source(source=lambda: [matrices(1)[0], matrices(2)[1]])
        angles = dali.fn.per_frame(dali.fn.external_source(source=lambda: [np.float32([0, 1]), np.float32([0, 1, 2])]))
        once = dali.fn.per_frame(dali.fn.external_source(source=lambda: [np.float32([[2, 3]])] * 2))
        turned = dali.fn.transforms.rotation(angle=angles)
        return (*outputs, dali.fn.coord_transform(x, M=single), turned, dali.fn.transforms.scale(turned, scale=once))

    return run(dali, pipeline)


@program
def permuted_branches(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.int32([10, 20, 30, 40]))
        chosen = dali.fn.external_source(source=lambda: np.array([True, False, True, False]))
        if chosen:
            y = dali.fn.permute_batch(x, indices=[1, 0])
        else:
            y = x
        return y

    return run(dali, pipeline, 4, enable_conditionals=True)


@program
def objects_and_background(dali):
    def pipeline():
        masks = dali.fn.external_source(
            source=lambda: [np.int32([[0, 0, 1], [0, 1, 1]]), np.int32([[0, 0, 0], [0, 1, 0]])]
        )
        find = dali.fn.segmentation.random_object_bbox
        options = {"format": "box", "seed": 1, "foreground_prob": 1.0}
        return (
            find(masks, background=0, classes=[1], **options),
            find(masks, background=2, classes=[1], **options),
            find(masks, classes=[-2147483648, 1], **options),
        )

    return run(dali, pipeline)


@program
def old_names_of_arguments(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: counted(2, 4, 5, 3), layout="HWC")
        kinds = dali.types
        return (
            dali.fn.crop(x, crop=[2, 2], output_dtype=kinds.FLOAT, image_type=kinds.RGB),
            dali.fn.shapes(x, type=kinds.INT32),
            dali.fn.resize(x, size=[2, 2], image_type=kinds.RGB),
            dali.fn.flip(x, seed=3),
        )

    return run(dali, pipeline)


# -- dynamic mode ------------------------------------------------------------------------------------------------------


@program
def dynamic_enumerations(dali):
    ndd, types = dali.experimental.dynamic, dali.types
    made = [
        ndd.tensor(types.INTERP_LINEAR),
        ndd.tensor([types.INTERP_LINEAR, types.INTERP_NN]),
        ndd.batch([types.INTERP_LINEAR, types.INTERP_NN]),
        ndd.tensor(1, dtype=types.INTERP_TYPE),
        ndd.tensor([types.FLOAT, types.UINT8]),
        ndd.tensor(types.RGB),
    ]
    photo = ndd.tensor(counted(4, 4, 1), layout="HWC")
    resized = ndd.resize(photo, size=[2, 2], interp_type=ndd.tensor(types.INTERP_NN))
    return [[str(item.dtype) for item in made], np.asarray(resized)]


@program
def tensors_of_anything(dali):
    tensors = dali.tensors
    torch = __import__("torch")
    capsule = torch.utils.dlpack.to_dlpack
    numbers = np.int32([[1, 2]])
    copied = tensors.TensorListCPU(numbers)
    copied.reinterpret(dali.types.FLOAT)
    return [
        tensors.TensorCPU(capsule(torch.zeros(2, 3))).shape(),
        tensors.TensorListCPU([capsule(torch.zeros(3))]).shape(),
        tensors.TensorListCPU(capsule(torch.zeros(2, 3))).shape(),
        tensors.TensorCPU(b"abc").shape(),
        tensors.TensorListCPU([np.array(3), np.array(4)]).shape(),
        str(copied.dtype),
        tensors.format_tensor(tensors.TensorCPU(numbers)),
        tensors.format_tensor(tensors.TensorCPU(numbers), show_data=False),
        dali.backend.CheckDLPackCapsule(capsule(torch.zeros(3))),
        dali.backend.CheckDLPackCapsule(3),
    ]
