"""Old names of operators, names of classes, and import paths, compared with DALI's."""

from __future__ import annotations

import importlib
import inspect
import warnings
from operator import attrgetter

import numpy as np
import pytest

from dalify import backend, eager, fn, ops, pipeline_def, plugin_manager, types
from dalify.api import registration
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DalifyError, DTypeError
from dalify.external_source import ExternalSource
from dalify.pipeline import Pipeline
from dalify.registry import Source, catalog
from dalify.registry.legacy import HIDDEN_NAMES, LEGACY_NAMES

_MODULES = ("backend", "internal", "ops", "types")

# All names that DALI 2.4 calls deprecated and that have a modern one.
OLD_NAMES = {
    "audio_decoder": "decoders.audio",
    "caffe2_reader": "readers.caffe2",
    "caffe_reader": "readers.caffe",
    "coco_reader": "readers.coco",
    "coin_flip": "random.coin_flip",
    "experimental.audio_resample": "audio_resample",
    "experimental.debayer": "debayer",
    "experimental.decoders.image": "decoders.image",
    "experimental.decoders.image_crop": "decoders.image_crop",
    "experimental.decoders.image_random_crop": "decoders.image_random_crop",
    "experimental.decoders.image_slice": "decoders.image_slice",
    "experimental.decoders.video": "decoders.video",
    "experimental.equalize": "equalize",
    "experimental.filter": "filter",
    "experimental.inflate": "decoders.inflate",
    "experimental.peek_image_shape": "peek_image_shape",
    "experimental.tensor_resize": "tensor_resize",
    "fast_resize_crop_mirror": "resize_crop_mirror",
    "file_reader": "readers.file",
    "image_decoder": "decoders.image",
    "image_decoder_crop": "decoders.image_crop",
    "image_decoder_random_crop": "decoders.image_random_crop",
    "image_decoder_slice": "decoders.image_slice",
    "mxnet_reader": "readers.mxnet",
    "nemo_asr_reader": "readers.nemo_asr",
    "normal_distribution": "random.normal",
    "numpy_reader": "readers.numpy",
    "sequence_reader": "readers.sequence",
    "ssd_random_crop": "random_bbox_crop",
    "tfrecord_reader": "readers.tfrecord",
    "transform_translation": "transforms.translation",
    "uniform": "random.uniform",
    "video_reader": "readers.video",
    "video_reader_resize": "readers.video_resize",
}

IMPORT_PATHS = [
    "backend_impl",
    "external_source",
    "pickling",
    "plugin_manager",
    "tensors",
    "tfrecord",
    "data_node",
    "types",
    "math",
    "pipeline",
    "pipeline.experimental",
    "plugin.pytorch",
    "plugin.base_iterator",
    "auto_aug.core",
    "auto_aug.augmentations",
    "auto_aug.auto_augment",
    "auto_aug.rand_augment",
    "auto_aug.trivial_augment",
]


@pytest.mark.parametrize(("old", "modern"), OLD_NAMES.items())
def test_old_names(old, modern):
    assert LEGACY_NAMES[old] == modern
    class_path = ".".join([*old.split(".")[:-1], old.rpartition(".")[2].replace("_", " ").title().replace(" ", "")])
    for kind, space, path in (("fn", fn, old), ("ops", ops, class_path)):
        with pytest.warns(DeprecationWarning, match=rf"{kind}\.{path} is now called {kind}\.") as caught:
            found = attrgetter(path)(space)
        assert modern.rpartition(".")[2].replace("_", "") in str(caught[0].message).lower().replace("_", "")
        assert caught[0].filename == __file__
        assert found.operator is catalog.find(modern)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted({*catalog.names(), *OLD_NAMES}))
def test_errors_have_the_name_that_the_program_uses(name):
    function = attrgetter(name)(fn)
    if name.startswith("_") or function.operator.public_name in ("arithmetic", "indexing"):
        pytest.skip("programs do not call it by this name")
    for space in (fn,) if isinstance(function.operator, Source) else (fn, eager):
        with pytest.raises(DalifyError) as caught:
            attrgetter(name)(space)(no_such_argument=3)
        assert str(caught.value).partition(":")[0] == f"fn.{name}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("make", "name"), [
    (lambda: ops.Resize(sizes=3), "ops.Resize"),
    (lambda: ops.decoders.Image(sizes=3), "ops.decoders.Image"),
    (lambda: ops.ImageDecoder(sizes=3), "ops.ImageDecoder"),
    (lambda: ops.Resize(size=3)(size=4), "ops.Resize"),
    (lambda: ops.Resize(size=3)(), "ops.Resize"),
    (lambda: ops.Resize(size=object())(np.zeros((2, 4, 4, 3), np.uint8)), "ops.Resize"),
])  # fmt: skip
def test_errors_of_classes_have_the_name_of_the_class(make, name):
    with Pipeline(batch_size=2, num_threads=1), pytest.raises(DalifyError) as caught:
        make()
    assert str(caught.value).partition(":")[0] == name


def test_an_argument_that_another_operator_has():
    with pytest.raises(DalifyError, match=r"unknown argument 'image_type'\. Did you mean 'output_type'\?"):
        ops.decoders.Image(image_type=types.RGB)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_errors_of_a_run_have_the_name_that_the_program_uses():
    arguments = {"sizes": [2, 4], "axes": [0, 1], "dtype": types.FLOAT16}
    resizes = {
        "fn.experimental.tensor_resize": fn.experimental.tensor_resize,
        "fn.tensor_resize": fn.tensor_resize,
        "ops.experimental.TensorResize": ops.experimental.TensorResize(**arguments),
        "ops.TensorResize": ops.TensorResize(**arguments),
    }
    for name, resize in resizes.items():

        @pipeline_def(batch_size=1, num_threads=1)
        def graph(resize=resize, name=name):
            images = fn.external_source(lambda: [np.zeros((4, 4, 3), np.float32)])
            return resize(images, **({} if name.startswith("ops") else arguments))

        with pytest.raises(DTypeError, match=rf"^{name}: dtype must be"):
            graph().run()
    with pytest.raises(DTypeError, match=r"^fn\.experimental\.tensor_resize: dtype must be"):
        eager.experimental.tensor_resize(np.zeros((4, 4, 3), np.float32), **arguments)


@pytest.mark.parametrize(("hidden", "modern"), HIDDEN_NAMES.items())
def test_hidden_names(hidden, modern):
    """Programs do not use these names, so there is no warning."""
    assert attrgetter(hidden)(fn).operator is catalog.find(modern)


def test_hidden_names_are_all(oracle):
    found = set()

    def walk(module, path):
        for name, value in vars(module).items():
            if inspect.ismodule(value) and value.__name__.startswith("nvidia.dali.fn."):
                walk(value, f"{path}{name}.")
            elif callable(value) and "hidden." in path and not path.startswith("_") and not name.startswith("_"):
                found.add(path + name)

    walk(oracle.fn, "")
    assert found == set(HIDDEN_NAMES)


def test_old_names_are_all(oracle):
    theirs = importlib.import_module("nvidia.dali.ops")
    schemas = {name for kind in (theirs.cpu_ops, theirs.gpu_ops, theirs.mixed_ops) for name in kind()}
    backend_of = importlib.import_module("nvidia.dali.backend")
    deprecated = set()
    for name in schemas:
        schema = backend_of.TryGetSchema(name)
        if schema is not None and schema.IsDeprecated() and not schema.IsDocHidden():
            deprecated.add(name.replace("__", ".").lower())
    # Without a modern name: shapes is unchanged, readers.sequence is a separate reader.
    assert deprecated - {"shapes", "readers.sequence"} <= {name.replace("_", "") for name in LEGACY_NAMES}


def test_classes_are_called_as_in_dali(oracle):
    theirs = importlib.import_module("nvidia.dali.ops")
    for space in ("", "readers", "decoders", "random", "reductions", "transforms", "noise", "segmentation"):
        other = attrgetter(space)(theirs) if space else theirs
        known = {name.lower(): name for name in dir(other)}
        for name in dir(attrgetter(space)(ops) if space else ops):
            assert known.get(name.lower(), name) == name


def test_import_paths():
    for name in IMPORT_PATHS:
        module = importlib.import_module(f"dalify.{name}")
        for public in getattr(module, "__all__", ()):
            assert hasattr(module, public)
    assert ExternalSource is ops.ExternalSource


def test_compiled_plugins_are_refused():
    for use in (plugin_manager.load_library, plugin_manager.load_directory):
        with pytest.raises(ArgumentValueError, match=r"lib\.so is compiled for NVIDIA DALI"):
            use("lib.so")


def test_functions_about_memory_are_accepted():
    backend.ReleaseUnusedMemory()
    backend.PreallocateDeviceMemory(1 << 20, 0)
    backend.PreallocatePinnedMemory(1 << 20)
    for setter, getter, value, wrong in (
        (backend.SetHostBufferShrinkThreshold, backend.GetHostBufferShrinkThreshold, 0.5, 1.5),
        (backend.SetHostBufferGrowthFactor, backend.GetHostBufferGrowthFactor, 1.2, 0.5),
        (backend.SetDeviceBufferGrowthFactor, backend.GetDeviceBufferGrowthFactor, 1.3, 5),
        (backend.SetBufferGrowthFactor, backend.GetHostBufferGrowthFactor, 1.1, -1),
    ):
        setter(value)
        assert getter() == value
        with pytest.raises(ValueError, match="must be between"):
            setter(wrong)


def test_chains():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        images = fn.external_source(source=lambda: image[None], layout="HWC")
        mirrored_twice = ops.Compose([ops.Flip(), ops.Compose([ops.Flip(), lambda x: (x, x)]), lambda x, y: x | y])
        return mirrored_twice(images), ops.Compose([ops.Flip()])(images, vertical=1)

    same, turned = pipeline().run()
    np.testing.assert_array_equal(same.as_array()[0], image)
    np.testing.assert_array_equal(turned.as_array()[0], image[::-1, ::-1])
    assert repr(ops.Compose([ops.Flip(), ops.Flip(vertical=1)])) == "Compose([Flip(), Flip(vertical)])"


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [(3, ArgumentTypeError, "got 3"), ([3], ArgumentTypeError, "got 3"), ({}, ArgumentTypeError, "list of operators")],
)
def test_chains_of_other_things(wrong, error, text):
    with pytest.raises(error, match=text):
        ops.Compose(wrong)


def test_modern_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("resize", "decoders.image", "random.uniform", "shapes"):
            attrgetter(name)(fn)


def _answers(root):
    """Return what functions that few programs call return."""
    backend, internal, ops, types = (importlib.import_module(f"{root}.{name}") for name in _MODULES)
    dlpack = importlib.import_module(f"{root}.python_function_plugin")
    schemas = [backend.GetSchema(name) for name in ("Resize", "ImageDecoder", "random__CoinFlip")]
    return [
        backend.RestrictPinnedMemUsage(),
        backend.GetCUDADeviceCount(),
        backend.IsDriverInitialized(),
        backend.LoadDirectory("/missing", allow_fail=True),
        ["Resize" in registered() for registered in (backend.RegisteredCPUOps, backend.RegisteredGPUOps)],
        "ImageDecoder" in backend.RegisteredMixedOps(),
        ["Resize" in registered() for registered in (ops.cpu_ops, ops.gpu_ops, ops.mixed_ops)],
        [(schema.AliasFor(), schema.IsDocHidden(), schema.IsInternal(), schema.IsStateful()) for schema in schemas],
        [(bool(schema.DeprecationMessage()), schema.IsDeprecatedArg("resize_x")) for schema in schemas],
        internal.get_submodule(root, ["ops", "made", "below"]) is ops.made.below,
        dlpack.DLTensorToArray(dlpack.ArrayToDLTensor(np.arange(6).reshape(2, 3))).tolist(),
        dlpack.current_dali_stream(),
        [int(types.to_dali_type(each)) for each in ("torch.float32", "torch.bool", "uint16", np.int16)],
        types.CUDAStream(5).ptr,
    ]


def test_functions_that_few_programs_call(oracle):
    assert _answers("dalify") == _answers("nvidia.dali")


def test_registered_names_are_listed(monkeypatch):
    monkeypatch.setattr(registration, "_registered", {"cpu": set(), "gpu": set()})
    ops.register_cpu_op("OnCpu")
    ops.register_gpu_op("OnGpu")
    assert [(name in ops.cpu_ops(), name in ops.gpu_ops()) for name in ("OnCpu", "OnGpu")] == [(1, 0), (0, 1)]
