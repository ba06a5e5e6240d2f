"""Random programs: the source code of a pipeline, how its data are fed, and how its results are consumed.

Every choice is drawn from the seed of the program, so both libraries run the same one. Values are deterministic.
"""

from __future__ import annotations

import importlib
import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_BATCH = 4
_RUNS = 3
_DTYPES = ("uint8", "int16", "int32", "float32")
_SIZES = ("[6, 5]", "[3, 8]")
# Arguments by frame; the second value has a number from 0 to 3 for each frame.
_BY_FRAME = (
    "fn.rotate({0}, angle=fn.per_frame(90.0 * {1}), interp_type=types.INTERP_NN, keep_size=True)",
    "fn.warp_affine({0}, fn.transforms.rotation(angle=fn.per_frame(90.0 * {1})), interp_type=types.INTERP_NN)",
    "fn.color_twist(fn.cast({0}, dtype=types.FLOAT), hue=fn.per_frame({1} * 30.0), saturation=s / 8)",
    "fn.warp_affine({0}, matrix=fn.transforms.scale(scale=fn.per_frame(fn.stack({1} + 1.0, {1} + 2.0, axis=1))))",
    "fn.gaussian_blur(fn.cast({0}, dtype=types.FLOAT), window_size=fn.per_frame(({1} % 2) * 2 + 3))",
    "fn.brightness(fn.cast({0}, dtype=types.FLOAT), brightness=fn.per_frame({1} * 0.5), brightness_shift=s / 1)",
    "fn.per_frame({0})",
    "fn.sequence_rearrange({0}, new_order=fn.stack(1, s % 2, 0))",
    "fn.stack(*fn.element_extract({0}, element_map=[1, 0]), axis=0)",
    "{0} + fn.reshape({1}, shape=[-1, 1, 1, 1])",
)
_POLICIES = ("'pad'", "'trim_to_shape'", "'error'")
_ITERABLE = ("iterable", "generator function", "object")
_FEEDINGS = (
    *("call", "call with a number", "call with a batch", "call with a sample", "generator", "two sources"),
    *_ITERABLE,
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
# One argument or more with a value of each sample; `s` is a number from 0 to 8.
_BY_SAMPLE = (
    "fn.crop({0}, crop=[3, 2], crop_pos_x=s / 9, crop_pos_y=s / 8, out_of_bounds_policy='pad')",
    "fn.slice({0}, start=s % 3, shape=s // 3 + 1, axes=[1], out_of_bounds_policy='pad')",
    "fn.slice({0}, rel_start=[0.2, 0.1], end=fn.stack(s + 3, s + 4), axis_names='WH', out_of_bounds_policy='pad')",
    "fn.pad({0}, fill_value=fn.cast(s, dtype=types.FLOAT), axis_names='HW', align=[3, 4])",
    "fn.pad({0}, axes=(0,), shape=s + 4)",
    "fn.erase({0}, anchor=fn.stack(s / 4, s / 3), shape=fn.stack(s / 2, s / 1), axis_names='HW', fill_value=[7])",
    "fn.rotate({0}, angle=90.0 * (s % 4), interp_type=types.INTERP_NN, fill_value=5, keep_size=True)",
    "fn.flip({0}, horizontal=fn.cast(s != 2, dtype=types.INT32), vertical=s % 2)",
    "fn.resize(fn.cast({0}, dtype=types.FLOAT), resize_x=s + 3.0, resize_y=s / 2 + 1, interp_type=types.INTERP_NN)",
    "fn.warp_affine({0}, fn.transforms.translation(offset=fn.stack(s / 1, s / -2)), interp_type=types.INTERP_NN)",
    "fn.cat({0}, {0}, axis_name='W')[:, s % 3 : -1]",
    "fn.stack({0}, {0})[s % 2]",
    "{0} + fn.stack(s, s % 2, 3)",
    "{0} * fn.cast(s % 2 == 0, dtype=types.INT32)",
    "fn.expand_dims({0}[s % 2], axes=[0])",
)


class _Restarting:
    """A source that begins again each time it is iterated."""

    def __init__(self, batches: list[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)


class RandomProgram:
    """A program that runs with either library.

    Args:
        seed: determines the program.

    Attributes:
        source: the code of the pipeline's function.
        described: how data are fed and results are consumed.
    """

    def __init__(self, seed: int) -> None:
        self._random = draw = random.Random(seed)
        self._name = f"<random program {seed}>"
        self._dtype = draw.choice(_DTYPES)
        self._feeding = draw.choice(_FEEDINGS)
        self._cycle = draw.choice((None, False, "quiet", "raise")) if self._feeding in _ITERABLE else None
        self._consuming = draw.choice(("run", "schedule", "torch", "classification"))
        is_tensor = self._consuming in ("torch", "classification")
        self._is_ragged = not is_tensor and draw.random() < 0.5
        self._layout = "FHWC" if draw.random() < 0.25 else "HWC"
        self._depth = draw.choice((1, 2, 3))
        is_partial = not is_tensor and draw.random() < 0.3
        self._batches = [draw.randint(1, _BATCH) if is_partial else _BATCH for _ in range(_RUNS)]
        self._policy = draw.choice(("FILL", "DROP", "PARTIAL"))
        self._reset = draw.choice((True, False, "yes", "no"))
        self._size = draw.choice((6, 8, 10))
        self._values = np.random.default_rng(seed).integers(0, 9, (_RUNS + 3, _BATCH, 9, 9, 3))
        self._extents = np.random.default_rng(seed).integers(5, 10, (_RUNS + 3, _BATCH, 2))
        self.source = "\n".join(["def define(fn, ops, types, source, options):", *self._function()])
        self.described = (
            f"{self._dtype} {self._layout}, ragged {self._is_ragged}, {self._feeding}, cycle {self._cycle}, "
            f"{self._consuming}, {self._policy}, {self._reset}, {self._size}, depth {self._depth}, "
            f"batches {self._batches}"
        )

    def run(self, dali: Any) -> Any:
        """Return the compared values, or the exception."""
        linecache.cache[self._name] = (len(self.source), None, self.source.splitlines(keepends=True), self._name)
        names: dict[str, Any] = {}
        exec(compile(self.source, self._name, "exec"), names)  # written above
        try:
            return self._consumed(dali, self._pipeline(dali, names["define"]))
        except Exception as error:
            return error

    # -- the code --------------------------------------------------------------------------------------------------

    def _function(self) -> list[str]:
        draw = self._random
        lines = [
            "    def changed(value, number):",
            f"        if number {draw.choice(_COMPARISONS)} {draw.randint(0, 8)}:",
            f"            return value {draw.choice('+-*')} number",
            "        else:",
            "            return value * 1",
            *self._sources(),
            "    y = fn.cast(x, dtype=types.FLOAT)",
            f"    n, b = 1, s {draw.choice(_COMPARISONS)} {draw.randint(0, 8)}",
        ]
        for _ in range(draw.randint(2, 5)):
            lines += self._statement("    ", 0)
        if self._consuming in ("torch", "classification"):  # a tensor has one shape
            frames = "[:1]" if self._layout == "FHWC" else ""
            resized = "fn.resize(fn.cast({0}, dtype=types.FLOAT), size=[4, 4])"
            lines += [f"    {name} = {resized.format(name)}{frames}" for name in "xy"]
        return [*lines, f"    return {'x, s' if self._consuming == 'classification' else 'x, y, s'}"]

    def _sources(self) -> list[str]:
        if self._feeding != "two sources":
            return ["    x, s = fn.external_source(source=source, num_outputs=2, **options)"]
        return [
            f"    x = fn.external_source(source[0], layout='{self._layout}')",
            "    s = ops.ExternalSource(source=source[1])()",
        ]

    def _statement(self, indent: str, depth: int) -> list[str]:
        draw = self._random
        if depth < 3 and draw.random() < 0.45:
            lines = [f"{indent}if {self._predicate()}:", *self._statement(indent + "    ", depth + 1)]
            if draw.random() < 0.4:
                lines += [f"{indent}elif {self._predicate()}:", *self._statement(indent + "    ", depth + 1)]
            if draw.random() < 0.6:
                lines += [f"{indent}else:", *self._statement(indent + "    ", depth + 1)]
            return lines
        if depth < 3 and draw.random() < 0.1:
            values = draw.choice(("range(2)", "(1, 0.5)", "[s, 2]", "enumerate([s])"))
            target = "_, k" if values.startswith("enumerate") else "k"
            return [f"{indent}for {target} in {values}:", *self._statement(indent + "    ", depth + 1)]
        if draw.random() < 0.15:
            return [indent + draw.choice(self._small_statements())]
        name = draw.choice("xy")
        return [f"{indent}{name} = {self._expression(name)}"]

    def _small_statements(self) -> list[str]:
        draw = self._random
        number = draw.randint(0, 8)
        integer = self._dtype.replace("float32", "float").upper()
        return [
            "pass",
            f"n = {number}",
            "n = s",
            "n += 1",
            f"b = s {draw.choice(_COMPARISONS)} {number}",
            f"b = not b or s == {number}",
            f"x, y = fn.cast(y, dtype=types.{integer}), fn.cast(x, dtype=types.FLOAT)",
            f"y = {self._converted('sum([y, y, n])', 'y')}",
            f"x = {self._converted('changed(x, s)', 'x')}",
            f"y = {self._converted('changed(y, n)', 'y')}",
        ]

    def _predicate(self) -> str:
        draw = self._random
        kind = draw.randrange(9)
        simple = f"s {draw.choice(_COMPARISONS)} {draw.randint(0, 8)}"
        if kind == 0:
            return f"not ({simple})"
        if kind == 1:
            return f"{simple} and s {draw.choice(_COMPARISONS)} {draw.randint(0, 8)}"
        if kind == 2:
            return f"{simple} or fn.reductions.mean(y) > {draw.randint(1, 6)}"
        if kind == 3:
            return f"fn.reductions.max({draw.choice('xy')}) > {draw.randint(2, 9)}"
        if kind == 4:
            return draw.choice(("b", "not b", "s", "s % 2", "n == 1", "n < s", "True"))
        if kind == 5:
            return f"(b or {simple}) and not (s == {draw.randint(0, 8)} and b)"
        return simple

    def _expression(self, name: str) -> str:
        draw = self._random
        number = draw.choice(("1", "2", "3", "s", "0.5", "1.5", "n", "-2"))
        as_float = f"fn.cast({name}, dtype=types.FLOAT)"
        kept = draw.choice(
            (
                f"fn.flip({name}, horizontal=fn.cast(s > 3, dtype=types.INT32), vertical={draw.randint(0, 1)})",
                f"fn.crop({name}, crop=[4, 4], out_of_bounds_policy={draw.choice(_POLICIES)})",
                f"fn.resize({as_float}, size={draw.choice(_SIZES)}, interp_type=types.INTERP_NN)",
                f"fn.pad({name}, axes=[0], align=4)",
                f"fn.slice({name}, 1, 3, axes=[0], out_of_bounds_policy={draw.choice(_POLICIES)})",
                f"fn.transpose({name}, perm={[0, 2, 1, 3] if self._layout == 'FHWC' else [1, 0, 2]})",
                f"fn.rotate({name}, angle=90, interp_type=types.INTERP_NN, keep_size=True)",
                f"{name}[1:4]",
                f"{name}[:, 1:-1]",
                f"{name}[:-1, ::1, 0:2]",
                f"-{name}",
                f"{name} * {name}",
                f"({name} > 3) * {name}",
                f"fn.cat({name}, {name}, axis=0)",
                f"fn.normalize({as_float}, mean=2, stddev=3)",
                f"fn.reshape({name}, layout='{self._layout}')",
            )
        )
        operand = f"{draw.choice('+-*')} {number}" if draw.random() < 0.75 else "/ (s + 1)"  # no NaN
        results = [kept, f"{name} {operand}", draw.choice(_BY_SAMPLE).format(name)]
        if self._layout == "FHWC":
            results.append(draw.choice(_BY_FRAME).format(name, f"(fn.cast({name}[:, 0, 0, 0], dtype=types.INT32) & 3)"))
        result = draw.choice(results)
        if draw.random() < 0.05:
            return result  # in a branch, an error if the type or the layout differs
        return self._converted(result, name)

    def _converted(self, value: str, name: str) -> str:
        """Return the value with the type and the layout that `name` always has."""
        dtype = "FLOAT" if name == "y" else self._dtype.replace("float32", "float").upper()
        return f"fn.reshape(fn.cast({value}, dtype=types.{dtype}), layout='{self._layout}')"

    # -- data ------------------------------------------------------------------------------------------------------

    def _sample(self, run: int, index: int) -> tuple[Any, Any]:
        height, width = self._extents[run, index] if self._is_ragged else (7, 6)
        values = self._values[run, index]
        image = values[:height, :width].astype(self._dtype)
        if self._layout == "FHWC":
            image = np.stack([image, image[::-1], image[:, ::-1]][: 3 - height % 2])
        return image, values[0, 0, 0].astype(np.int32)

    def _batch(self, run: int) -> Any:
        samples = [self._sample(run, index) for index in range(self._batches[run])]
        images, numbers = zip(*samples, strict=True)
        return list(images) if self._is_ragged else np.stack(images), np.stack(numbers)

    def _feed(self) -> tuple[Any, dict[str, Any]]:
        options: dict[str, Any] = {"layout": [self._layout, ""]}
        batches = [self._batch(run) for run in range(_RUNS)]
        if self._feeding == "call":
            remaining = iter(batches)
            return lambda: next(remaining), options
        if self._feeding == "call with a number":
            return self._numbered, options
        if self._feeding == "call with a batch":
            return lambda info: self._numbered(info.iteration), {**options, "batch_info": True}
        if self._feeding == "call with a sample":
            return self._by_sample, {**options, "batch": False}
        if self._feeding == "generator":
            return (batch for batch in batches), options
        if self._feeding == "two sources":
            return [[batch[place] for batch in batches] for place in range(2)], options
        if self._cycle is not None:
            options["cycle"] = self._cycle
        if self._feeding == "object":
            return _Restarting(batches), options
        return (lambda: (yield from batches)) if self._feeding == "generator function" else batches, options

    def _numbered(self, number: int) -> Any:
        if number >= _RUNS:
            raise StopIteration
        return self._batch(number)

    def _by_sample(self, info: Any) -> Any:
        if info.iteration >= _RUNS:
            raise StopIteration
        return self._sample(info.iteration, info.idx_in_batch)

    # -- running ---------------------------------------------------------------------------------------------------

    def _pipeline(self, dali: Any, define: Callable[..., Any]) -> Any:
        source, options = self._feed()
        make = dali.pipeline_def(define, enable_conditionals=True)
        pipe = make(
            dali.fn,
            dali.ops,
            dali.types,
            source,
            options,
            batch_size=_BATCH,
            num_threads=1,
            device_id=None,
            prefetch_queue_depth=self._depth,
        )
        pipe.build()
        return pipe

    def _consumed(self, dali: Any, pipe: Any) -> list[Any]:
        if self._consuming in ("torch", "classification"):
            return self._iterated(dali, pipe)
        found: list[Any] = []
        for _ in range(2 * _RUNS + 1):
            try:
                if self._consuming == "run":
                    found.append([self._plain(output) for output in pipe.run()])
                else:
                    pipe.schedule_run()
                    found.append([self._plain(output) for output in pipe.share_outputs()])
                    pipe.release_outputs()
            except StopIteration:
                found.append("end")
                pipe.reset()
        return found

    def _iterated(self, dali: Any, pipe: Any) -> list[Any]:
        plugin = importlib.import_module(f"{dali.__name__}.plugin.pytorch")
        policy = getattr(importlib.import_module(f"{dali.__name__}.plugin.base_iterator").LastBatchPolicy, self._policy)
        options = {"size": self._size, "last_batch_policy": policy, "auto_reset": self._reset}
        if self._consuming == "torch":
            names = ["x", "y", "s"]
            iterator = plugin.DALIGenericIterator([pipe], names, **options)
        else:
            names = ["data", "label"]
            iterator = plugin.DALIClassificationIterator(pipe, **options)
        found: list[Any] = [len(iterator)]
        for batch in iterator:
            found.append([batch[0][name].numpy().copy() for name in names])
        return found

    @staticmethod
    def _plain(output: Any) -> Any:
        is_dense = output.is_dense_tensor()
        samples = [np.array(output.at(index)) for index in range(len(output))]
        whole = [output.as_array().copy(), tuple(output.as_tensor().shape())] if is_dense else []
        kind = str(output.dtype).rpartition(".")[2]
        return [kind, output.layout(), is_dense, [tuple(shape) for shape in output.shape()], samples, whole]
