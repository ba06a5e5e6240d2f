"""Operators of users: every way to call them, worker processes, caches, and refused definitions."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import dalify
import dalify.experimental.dynamic as ndd
from dalify import Pipeline, eager, fn, ops, pipeline_def, types
from dalify.base.errors import (
    CacheError,
    DTypeError,
    OperatorDefinitionError,
    OperatorError,
    SerializationError,
    ShapeError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from dalify.custom import VARIES, CustomOperator, PerSample, Shaping, Spec, operator, remove
from dalify.registry import catalog
from dalify.registry.schema import get_schema

PROJECT = Path(__file__).parents[2]
IMAGES = np.random.default_rng(3).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
RAGGED = [image[: 3 + index] for index, image in enumerate(IMAGES)]


@pytest.fixture(autouse=True)
def removed_afterwards() -> Iterator[None]:
    """Remove what a test added."""
    before = set(catalog.names())
    yield
    for name in set(catalog.names()) - before:
        remove(name)


def add_vignette(name: str = "vignette") -> CustomOperator:
    @operator(name=name)
    def vignette(images: Spec, /, *, strength: PerSample[float] = 0.5, channel: int | None = None) -> Spec:
        """Darken the left column of images.

        Args:
            images: images HWC.
            strength: fraction that remains.
            channel: the only channel that changes.
        """
        return images

    @vignette.cpu
    def _(out: Any, images: Any, *, strength: Any, channel: int | None) -> None:
        out[...] = images
        chosen = slice(None) if channel is None else slice(channel, channel + 1)
        out[:, :, 0, chosen] = images[:, :, 0, chosen] * strength[:, None, None]

    @vignette.gpu
    def _(out: Any, images: Any, *, strength: Any, channel: int | None) -> None:
        chosen = slice(None) if channel is None else slice(channel, channel + 1)
        out.copy_(images)
        factor = images.new_tensor(strength.tolist(), dtype=out.float().dtype)[:, None, None]
        out[:, :, 0, chosen] = (images[:, :, 0, chosen] * factor).to(out.dtype)

    return vignette


def darkened(image: np.ndarray[Any, Any], strength: float) -> np.ndarray[Any, Any]:
    result = image.copy()
    result[:, 0] = (image[:, 0] * np.float32(strength)).astype(np.uint8)
    return result


def one_output(make: Callable[..., Any], samples: Any = RAGGED, **options: Any) -> Pipeline:
    @pipeline_def(**{"batch_size": 4, "num_threads": 2, "seed": 5, **options})
    def pipe():
        return make(fn.external_source(source=lambda: list(samples), layout="HWC", dtype=types.UINT8))

    return pipe()


def arrays(batch: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(batch.as_cpu().at(index)) for index in range(len(batch))]


# -- calls
# ----------------------------------------------------------------------------------------------------------------------


def test_functions(device: str) -> None:
    add_vignette()
    (found,) = one_output(lambda images: fn.vignette(images.gpu() if device == "gpu" else images, strength=0.25)).run()
    for result, image in zip(arrays(found), RAGGED, strict=True):
        np.testing.assert_array_equal(result, darkened(image, 0.25))


def test_classes_and_namespaces() -> None:
    add_vignette("mylab.vignette")
    (found,) = one_output(ops.mylab.Vignette(strength=0.25)).run()
    np.testing.assert_array_equal(arrays(found)[1], darkened(RAGGED[1], 0.25))
    assert dir(fn.mylab) == ["vignette"]
    assert {"mylab"} <= set(dir(fn)) & set(dir(ops)) & set(dir(eager))
    assert get_schema("mylab__Vignette").GetArgumentDox("strength") == "fraction that remains."
    assert fn.mylab.vignette.__doc__.startswith("Darken the left column")
    with pytest.raises(UnknownArgumentError, match=r"unknown argument 'power'(?s:.*)Valid arguments: strength"):
        ops.mylab.Vignette(power=1)


def test_without_a_pipeline() -> None:
    add_vignette()
    strengths = eager.batch([np.float32(value) for value in (0, 0.25, 0.5, 1)])
    expected = [darkened(image, value) for image, value in zip(RAGGED, (0, 0.25, 0.5, 1), strict=True)]
    immediate = eager.vignette(eager.batch(RAGGED), strength=strengths)
    with dalify.lazy():
        deferred = eager.vignette(eager.batch(RAGGED), strength=strengths)
    dynamic = ndd.vignette(ndd.batch(RAGGED), strength=ndd.batch([0.0, 0.25, 0.5, 1.0]))
    for index, image in enumerate(expected):
        for result in (immediate[index], deferred[index], dynamic.tensors[index]):
            np.testing.assert_array_equal(np.asarray(result), image)


def test_conditions_varying_arguments_and_explain() -> None:
    add_vignette()

    def make(images: Any) -> Any:
        level = fn.random.uniform(range=[0.0, 1.0])
        if level > 0.5:
            images = fn.vignette(images, strength=level, channel=1)
        return images, level

    pipe = one_output(make)
    results, levels = pipe.run()
    for result, image, level in zip(arrays(results), RAGGED, arrays(levels), strict=True):
        expected = image.copy()
        if level > 0.5:
            expected[:, 0, 1] = (image[:, 0, 1] * level).astype(np.uint8)
        np.testing.assert_array_equal(result, expected)
    assert "test_custom_operators.py" in pipe.explain()


def test_no_gpu_function(emulated_gpu: None) -> None:
    @operator
    def inverted(images: Spec, /) -> Spec:
        """Invert images."""
        return images

    @inverted.cpu
    def _(out: Any, images: Any) -> None:
        np.subtract(255, images, out=out)

    pipe = one_output(lambda images: fn.inverted(images.gpu()))
    (found,) = pipe.run()
    np.testing.assert_array_equal(arrays(found)[2], 255 - RAGGED[2])
    assert "inverted" in pipe.explain()
    assert "has no GPU kernel and runs on the CPU" in pipe.explain()


def test_rules_with_shapes() -> None:
    @operator(outputs=2)
    def top_rows(images: Spec, /, *, rows: Shaping[int]) -> tuple[Spec, Spec]:
        """Return the first rows, and their sums."""
        sums = Spec(types.FLOAT, 1, "")
        if images.shape is not None and rows is not VARIES:
            images = images.with_extents({"H": min(rows, images.extent("H"))})
            sums = Spec(types.FLOAT, 1, "", images.shape[:1])
        return images, sums

    @top_rows.cpu
    def _(out0: Any, out1: Any, images: Any) -> None:
        out0[...] = images[:, : out0.shape[1]]
        out1[...] = out0.sum(axis=(2, 3), dtype=np.float32)

    counts = eager.batch([np.int32(value) for value in (1, 2, 3, 9)])
    tops, sums = eager.top_rows(eager.batch(RAGGED, "HWC"), rows=counts)
    for index, count in enumerate((1, 2, 3, 9)):
        np.testing.assert_array_equal(np.asarray(tops[index]), RAGGED[index][:count])
        np.testing.assert_array_equal(np.asarray(sums[index]), RAGGED[index][:count].sum((1, 2)))


def test_results_whose_shape_depends_on_values() -> None:
    @operator(allocating=True)
    def bright_pixels(images: Spec, /, *, above: int = 127) -> Spec:
        """Return the bright elements."""
        return Spec(types.UINT8, 1, "")

    @bright_pixels.cpu
    def _(images: Any, *, above: int) -> list[Any]:
        return [image[image > above] for image in images]

    (found,) = one_output(lambda images: fn.bright_pixels(images, above=99)).run()
    for result, image in zip(arrays(found), RAGGED, strict=True):
        np.testing.assert_array_equal(result, image[image > 99])


def test_random_numbers_depend_on_the_seed_and_the_sample() -> None:
    @operator(random=True)
    def flicker(images: Spec, /) -> Spec:
        """Scale each image by a random factor."""
        return images

    @flicker.cpu
    def _(out: Any, images: Any, *, draws: Any) -> None:
        out[...] = images * draws.uniform(1)[:, :, None, None]

    runs = [one_output(fn.flicker, num_threads=threads).run()[0] for threads in (1, 3)]
    for first, second in zip(*map(arrays, runs), strict=True):
        np.testing.assert_array_equal(first, second)
    same, other = eager.flicker(IMAGES[0], seed=1), eager.flicker(IMAGES[0], seed=2)
    np.testing.assert_array_equal(same, eager.flicker(IMAGES[0], seed=1))
    assert not np.array_equal(same, other)


def test_prepare() -> None:
    @operator
    def centered(images: Spec, /) -> Spec:
        """Subtract the mean of each image."""
        return images.replace(dtype=types.FLOAT)

    @centered.prepare
    def _(images: Any) -> dict[str, Any]:
        return {"means": np.array([np.mean(sample) for sample in images.samples], np.float32)}

    @centered.cpu
    def _(out: Any, images: Any, *, means: Any) -> None:
        out[...] = images - means[:, None, None, None]

    (found,) = one_output(fn.centered).run()
    for result, image in zip(arrays(found), RAGGED, strict=True):
        np.testing.assert_allclose(result, image - image.mean(), rtol=0, atol=1e-4)


# -- pickling, serialization, processes
# ----------------------------------------------------------------------------------------------------------------------


def test_serialization_finds_the_operator_by_name() -> None:
    add_vignette("mylab.vignette")
    pipe = one_output(lambda _: fn.mylab.vignette(np.uint8(IMAGES[0]), strength=0.25))
    text = pipe.serialize()
    again = Pipeline.deserialize(text, batch_size=2, num_threads=1)
    np.testing.assert_array_equal(arrays(again.run()[0])[0], darkened(IMAGES[0], 0.25))
    remove("mylab.vignette")
    with pytest.raises(
        UnknownOperatorError, match=r"(?s)no operator fn.mylab.vignette.*import the module that defines"
    ):
        Pipeline.deserialize(text, batch_size=2, num_threads=1)
    assert len(pipe.run()[0]) == 4, "a built pipeline keeps it"


def test_copies_are_the_operator_itself() -> None:
    vignette = add_vignette()
    assert copy.deepcopy(vignette) is vignette
    copied = cloudpickle.loads(cloudpickle.dumps(vignette))
    assert isinstance(copied, CustomOperator)
    assert copied.kernels.keys() == vignette.kernels.keys()
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"vignette"):
        pickle.dumps(vignette)  # of a function that no module has


PROGRAM = """
import pickle
import numpy as np
from dalify import fn, pipeline_def, types
from dalify.custom import PerSample, Spec, operator

@operator(name="mylab.added")
def added(images: Spec, /, *, amount: PerSample[int] = 1) -> Spec:
    "Add a number."
    return images

@added.cpu
def _(out, images, *, amount):
    np.add(images, amount[:, None], out=out, casting="unsafe")

@pipeline_def(batch_size=3, num_threads=1, processes=2, py_start_method="{method}", prefetch_queue_depth=1)
def pipe():
    return fn.mylab.added(np.arange(3, dtype=np.int32), amount=fn.random.uniform(values=[5, 7], dtype=types.INT32))

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(added)) is added
    running = pipe()
    rows = running.run()[0].as_array()
    assert set((rows - np.arange(3)).ravel().tolist()) <= {{5, 7}}, rows
    print("rows", len(rows))
    del running
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes(method: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(method=method), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, str(path)], cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["rows", "3"]


def test_spawned_processes_get_operators_of_functions_by_value() -> None:
    add_vignette()
    pipe = one_output(
        lambda _: fn.vignette(IMAGES[0], strength=0.25),
        num_threads=1, processes=1, py_start_method="spawn", prefetch_queue_depth=1,
    )  # fmt: skip
    np.testing.assert_array_equal(arrays(pipe.run()[0])[0], darkened(IMAGES[0], 0.25))


def test_caches_distinguish_definitions(tmp_path: Path) -> None:
    def added(amount: int) -> int:
        @operator(name="mylab.added", replace=True)
        def added(values: Spec, /) -> Spec:
            """Add a number."""
            return values

        @added.cpu
        def _(out: Any, values: Any) -> None:
            out[...] = values + amount

        files = tmp_path / "files"
        files.mkdir(exist_ok=True)
        (files / "0.bin").write_bytes(b"\x01\x02")

        @pipeline_def(batch_size=1, num_threads=1)
        def pipe():
            data, _ = fn.readers.file(files=[str(files / "0.bin")])
            return fn.cache(fn.mylab.added(data), cache_folder=str(tmp_path / "cache"))

        return int(arrays(pipe().run()[0])[0][0])

    assert [added(1), added(1), added(7)] == [2, 2, 8]


def test_caches_refuse_functions_of_unknown_state() -> None:
    class Opaque:
        amount = 3

    state = Opaque()

    @operator
    def opaque(values: Spec, /) -> Spec:
        """Add a number."""
        return values

    @opaque.cpu
    def _(out: Any, values: Any) -> None:
        out[...] = values + state.amount

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.cache(fn.opaque(fn.readers.file(files=[__file__])[0]))

    with pytest.raises(CacheError, match=r"the functions of fn.opaque use a Opaque"):
        pipe().run()


# -- definitions
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("resize", "fn.resize is an operator of dalify"),
        ("re_size", "fn.resize is an operator of dalify"),
        ("decoders.image", "fn.decoders.image is an operator of dalify"),
        ("image_decoder", "fn.image_decoder is an operator of dalify"),
        ("decoders", "dalify.fn.decoders exists"),
        ("resize.mine", "fn.resize exists, and an operator and a namespace cannot have the same name"),
        ("seed", "dalify.eager.seed exists"),
        ("compose", "dalify.ops.Compose exists"),
        ("readers.mine", "namespace named readers"),
        ("_mine", "cannot be the name"),
        ("Mine", "cannot be the name"),
        ("two words", "cannot be the name"),
        ("mine.", "cannot be the name"),
        ("class", "cannot be the name"),
        (7, "cannot be the name"),
    ],
)
def test_refused_names(name: Any, problem: str) -> None:
    _ = fn.resize, eager.resize, ops.Resize, fn.decoders.image  # members that are used already
    with pytest.raises(OperatorDefinitionError, match=problem) as caught:
        add_vignette(name)
    assert Path(caught.value.line.filename).name == "test_custom_operators.py"
    assert name not in [known for known in catalog.names() if catalog.added(known)]


def without_slash(images: Spec) -> Spec:
    return images


def without_input_annotation(images, /) -> Spec:
    return images


def without_annotation(images: Spec, /, *, size=3) -> Spec:
    return images


def with_positional_argument(images: Spec, /, size: int = 3) -> Spec:
    return images


def with_keywords(images: Spec, /, **options: int) -> Spec:
    return images


def with_reserved_name(images: Spec, /, *, device: str = "cpu") -> Spec:
    return images


def with_wrong_default(images: Spec, /, *, size: int = "three") -> Spec:  # pyright: ignore[reportArgumentType]
    return images


def with_unknown_annotation(images: Spec, /, *, size: Unknown = 3) -> Spec:  # noqa: F821 # pyright: ignore
    return images


def with_varying_string(images: Spec, /, *, mode: PerSample[str] = "a") -> Spec:
    return images


def with_wrong_result(images: Spec, /) -> int:
    return 3


def with_input_default(images: Spec = 3, /) -> Spec:  # pyright: ignore[reportArgumentType]
    return images


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (without_slash, "the input images must be positional-only"),
        (without_input_annotation, "annotate the input images as Spec"),
        (without_annotation, "the argument size has no annotation"),
        (with_positional_argument, r"size must be positional-only \(an input\) or keyword-only \(an argument\)"),
        (with_keywords, r"list all arguments; \*\*options"),
        (with_reserved_name, "'device' has a meaning for all operators"),
        (with_wrong_default, "size must be an integer; got 'three'"),
        (with_unknown_annotation, "an annotation cannot be evaluated"),
        (with_varying_string, "the argument mode cannot vary per sample"),
        (with_wrong_result, "a rule returns a Spec"),
        (with_input_default, "the default of the input images can only be None"),
        (print, "an operator is defined by a function"),
    ],
)
def test_refused_signatures(rule: Any, problem: str) -> None:
    with pytest.raises(OperatorDefinitionError, match=problem) as caught:
        operator(name="mylab.refused")(rule)
    assert "test_custom_operators.py" in str(caught.value)
    with pytest.raises(UnknownOperatorError):
        _ = fn.mylab.refused


def test_a_name_without_its_keyword() -> None:
    with pytest.raises(OperatorDefinitionError, match=r"To name it, write @operator\(name='mylab\.named'\)"):
        operator("mylab.named")


@pytest.mark.parametrize("outputs", [0, -1, "two", True])
def test_refused_counts(outputs: Any) -> None:
    with pytest.raises(OperatorDefinitionError, match=r"outputs must be a positive integer"):
        operator(name="mylab.refused", outputs=outputs)(lambda: Spec())


def test_refused_kernels() -> None:
    @operator
    def mild(images: Spec, /, *, strength: PerSample[float] = 0.5) -> Spec:
        """Do nothing."""
        return images

    with pytest.raises(OperatorDefinitionError, match=r"must take \(out, images\).* it takes \(images\)"):
        mild.cpu(lambda images: None)
    with pytest.raises(OperatorDefinitionError, match=r"takes power, which is not an argument(?s:.*)strength"):

        @mild.gpu
        def _(out: Any, images: Any, *, power: Any) -> None: ...

    vignette = add_vignette()
    with pytest.raises(OperatorDefinitionError, match=r"has a CPU function already(?s:.*)replace=True"):
        vignette.cpu(lambda out, images: None)

    with pytest.raises(OperatorDefinitionError, match=r"attach the prepare function of fn.vignette before"):
        vignette.prepare(lambda images: {})


def test_adding_twice() -> None:
    first = add_vignette()
    again = add_vignette()  # the same definition, executed again
    assert first is not again
    assert catalog.find("vignette") is again
    with pytest.raises(OperatorDefinitionError, match=r"fn.vignette exists already"):

        @operator
        def vignette(images: Spec, /) -> Spec:
            return images

    @operator(name="vignette", replace=True)
    def other(images: Spec, /) -> Spec:
        return images

    @other.cpu
    def _(out: Any, images: Any) -> None:
        out[...] = 7

    assert eager.vignette(IMAGES[0]).max() == 7
    assert np.asarray(ndd.vignette(IMAGES[0])).max() == 7


def test_removing() -> None:
    add_vignette("mylab.vignette")
    assert fn.mylab.vignette.operator.name == "mylab.vignette"
    assert ops.mylab.Vignette.schema_name == "mylab__Vignette"
    remove("mylab.vignette")
    for attempt in (lambda: fn.mylab.vignette, lambda: ops.mylab.Vignette, lambda: get_schema("mylab__Vignette")):
        with pytest.raises(UnknownOperatorError):
            attempt()
    for name in ("mylab.vignette", "resize"):
        with pytest.raises(UnknownOperatorError, match=f"fn.{name} was not added with dalify.custom"):
            remove(name)
    remove(add_vignette())
    with pytest.raises(UnknownOperatorError):
        _ = eager.vignette


# -- errors while they run
# ----------------------------------------------------------------------------------------------------------------------


def failing(kernel: Callable[..., Any], rule: Callable[[Spec], Any] = lambda images: images, **options: Any) -> str:
    """Return the error of a pipeline with an operator of this kernel and rule."""

    @operator(name="mylab.failing", replace=True, **options)
    def failing(images: Spec, /) -> Spec:
        """Fail."""
        return rule(images)

    failing.cpu(kernel)
    with pytest.raises(OperatorError) as caught:
        one_output(lambda images: fn.mylab.failing(images)).run()  # the user's line
    assert "lambda images: fn.mylab.failing(images)" in str(caught.value)
    return str(caught.value)


def raising(error: Exception) -> Any:
    raise error


def test_rules_that_raise() -> None:
    def fill(out: Any, images: Any) -> None:
        out[...] = images

    assert "the rule failed (KeyError: 'x')" in failing(fill, lambda images: raising(KeyError("x")))
    assert "the rule failed (ValueError: too few)" in failing(fill, lambda images: raising(ValueError("too few")))
    assert "spec.shape is None" in failing(fill, lambda images: images.replace(shape=images.shape[:2]))
    assert "the rule must return 1 Spec; it returned int" in failing(fill, lambda images: (3,))
    assert "it returned Spec, Spec" in failing(fill, lambda images: (images, images))
    assert "it returned nothing" in failing(fill, lambda images: None)
    assert "the rule returned no shape for output 0" in failing(fill, lambda images: Spec(types.UINT8, 2, ""))
    assert "the rule is defined in test_custom_operators.py" in failing(fill, lambda images: None).lower()


def test_rules_that_use_varying_arguments() -> None:
    @operator
    def branching(images: Spec, /, *, size: PerSample[int] = 1) -> Spec:
        """Compare an argument."""
        return images if size else images.replace(layout="")

    branching.cpu(lambda out, images: None)
    sizes = eager.batch([np.int32(1)])
    with pytest.raises(OperatorError, match=r"compare with `is VARIES`"):
        eager.branching(eager.batch(IMAGES[:1]), size=sizes)


def test_functions_that_raise_or_return_something_else() -> None:
    wrong = failing(lambda out, images: out.__setitem__(..., np.zeros((9, 9))))
    assert "could not broadcast" in wrong
    assert "sample 0 of the batch" in wrong
    assert "must write its result into out and return None" in failing(lambda out, images: images)
    assert "an assertion failed" in failing(lambda out, images: raising(AssertionError()))
    assert "must return 1 results; it returned 2" in failing(lambda images: (images, images), allocating=True)
    assert "it returned a int" in failing(lambda images: 3, allocating=True)


def test_results_that_contradict_the_rule() -> None:
    def define(kernel: Callable[..., Any]) -> None:
        @operator(name="mylab.contradicting", allocating=True, replace=True)
        def contradicting(images: Spec, /) -> Spec:
            """Return the images."""
            return images

        contradicting.cpu(kernel)

    define(lambda images: images[:, 0])
    with pytest.raises(ShapeError, match=r"the rule returned 3 dimensions; the result has 2"):
        eager.mylab.contradicting(IMAGES[0])
    define(lambda images: images.astype(np.float32))
    with pytest.raises(DTypeError, match=r"the rule returned uint8; the result is float32"):
        eager.mylab.contradicting(IMAGES[0])
    define(lambda images: list(images) * 2)
    with pytest.raises(ShapeError, match=r"the function returned 2 samples for a group of 1"):
        eager.mylab.contradicting(IMAGES[0])


def test_without_a_function() -> None:
    @operator
    def nothing(images: Spec, /) -> Spec:
        """Have no function."""
        return images

    with pytest.raises(
        OperatorDefinitionError, match=r"fn.nothing: the operator has no CPU or GPU function(?s:.*)@nothing.cpu"
    ):
        eager.nothing(IMAGES[0])
    with pytest.raises(OperatorDefinitionError, match=r"fn.nothing: the operator has no CPU or GPU function"):
        one_output(lambda images: fn.nothing(images)).build()


def test_untrusted_graphs_cannot_name_modules() -> None:
    add_vignette()
    text = one_output(lambda _: fn.vignette(IMAGES[0])).serialize().replace(b'"vignette"', b'"os.system"')
    with pytest.raises((SerializationError, UnknownOperatorError)):
        Pipeline.deserialize(text, batch_size=1, num_threads=1)
