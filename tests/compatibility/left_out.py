"""What dalify omits or does differently, with the reason; the walker must find no other differences.

Keys are patterns of `fnmatch` for the paths that the walker gives. The battery's cases have further ones.
"""

from __future__ import annotations

from dalify.registry.schema import pascal_case
from tests.operators.battery.cases import CASES

_CHECKS = "how DALI's transforms check their arguments; the checks are there"
_FORMS = "how DALI's transforms keep their arguments, for their own use"
_COMPILED = "a part of DALI's compiled executor, which no program needs"
_INTERNAL = "internals of DALI's pickling of callbacks; DaliCallbackPickler is there"
_SAME_SCHEMA = "an old name shares the schema of the modern one"
_PLUGINS = "about compiling plugins in C++, which dalify cannot load"
_AT_ONCE = "one call for both: what has an effect here is given when the reader is made"

_ELSEWHERE = "not installed here; make test-frameworks compares it"
_IMPORTED_THERE = "imported there, for DALI's own use"

# Where the framework is installed, see `framework_environments.py`.
OF_FRAMEWORKS: dict[str, str] = {
    "plugin.jax.clu.DataNode": _IMPORTED_THERE,
    "plugin.jax.clu.Pipeline": _IMPORTED_THERE,
    "plugin.jax.iterator.DataNode": _IMPORTED_THERE,
    "plugin.jax.f": "a variable of a loop",
    "plugin.jax.integration": "private functions between DALI's own modules",
    "plugin.jax.iterator.default_num_threads_value": "Pipeline has a default of its own",
}

LEFT_OUT: dict[str, str] = {
    # Frameworks.
    "plugin.jax": _ELSEWHERE,
    "plugin.paddle": _ELSEWHERE,
    "plugin.tf": "needs a plugin of DALI's own for TensorFlow, which is compiled where it is installed",
    # What DALI's transforms are made of, and no program names.
    "experimental.torchvision.v2.*_rules": _CHECKS,
    "experimental.torchvision.v2.*ValidateRule": _CHECKS,
    "experimental.torchvision.v2.*.verify_*": _CHECKS,
    "experimental.torchvision.v2.*.preprocess_data": _CHECKS,
    "experimental.torchvision.v2.operator.Operator.__init__.kwargs": _CHECKS,
    "experimental.torchvision.v2.*.adjust_*": _FORMS,
    "experimental.torchvision.v2.*.get_HWC_from_layout_*": _FORMS,
    "experimental.torchvision.v2.operator.get_input_shape_dynamic": _FORMS,
    "experimental.torchvision.v2.resize.Resize.*": _FORMS,
    "experimental.torchvision.v2.*PADDING_CLASS": _FORMS,
    "experimental.torchvision.v2.pad.Pad[CERS]*": _FORMS,
    "experimental.torchvision.v2.compose.Pipeline*": "Compose makes a Pipeline",
    "experimental.torchvision.v2.compose.*": _IMPORTED_THERE,
    "experimental.torchvision.v2.resize.DALIInterpType": _IMPORTED_THERE,
    "experimental.torchvision.v2.randomcrop.[CR]e*": _IMPORTED_THERE,
    "experimental.torchvision.v2.functional.*.[A-Z]*": _IMPORTED_THERE,
    # The compiled part.
    "libdali*": "a shared library, no module",
    "backend*.ExternalContextCheckpoint": _COMPILED,
    "backend*.GetSchemaAndTarget": _COMPILED,
    "backend*.Init": _COMPILED,
    "backend*.LoadDefaultPlugins": _PLUGINS,
    "backend*.GetCxx11AbiFlag": _PLUGINS,
    "backend*.Pipeline": _COMPILED,
    "backend*.PipelineDebug": _COMPILED,
    "backend*.SharedMem": _COMPILED,
    "backend*.Stream": _COMPILED,
    "backend*.GetCufftVersion": "a library that dalify does not use",
    "backend*.GetNppVersion": "a library that dalify does not use",
    "backend*.GetNvimgcodecVersion": "a library that dalify does not use",
    "backend*.GetNvjpegVersion": "a library that dalify does not use",
    "backend.cuda_checked": "a note of DALI's own on what it has done",
    "backend.initialized": "a note of DALI's own on what it has done",
    "backend_impl.OpSchema.__init__.*": "DALI's cannot be made by a program; GetSchema gives it",
    "backend_impl.OpSpec.InferOutputMetadata": _COMPILED,
    "reducers.*": _INTERNAL,
    "python_function_plugin.DLTensorObj": "an object between two functions of DALI's own",
    "tensors.Pipeline*Adapter": "how DALI's printing of tensors reads them",
    "data_node.not_iterable": "a decorator for DALI's own classes",
    "pipeline.WorkerPool": "of DALI's own module of worker processes, imported there",
    "types.dali_type_converters": "a list of functions that DALI's frameworks add to",
    "plugin.numba.Pipeline": "imported there; it is dalify.Pipeline",
    "plugin.numba.address_as_void_pointer": "how DALI calls what numba compiled",
    "plugin.numba.minimal_numba_version": "about numba for CUDA",
    "plugin.pytorch.TorchPythonFunction.torch_wrapper": "a method for DALI's own use",
    "experimental.dynamic.pytorch.nodes.Batch": "imported there; it is dynamic.Batch",
    "experimental.dynamic.pytorch.nodes.Tensor": "imported there; it is dynamic.Tensor",
    "ops.PythonFunction.check_outputs": "a method for DALI's own use",
    "ops.PythonFunction.current_stream": "a method for DALI's own use",
    "ops.PythonFunction.function_wrapper_*": "a method for DALI's own use",
    # Meant to be otherwise.
    "*pipeline_def.enable_conditionals": "conditionals are on by default, see ARCHITECTURE.md",
    "*pipeline_def.fn": "a parameter of the pipeline function may be called fn, too",
    "pipeline.DataNode.__init__.*": "nodes are made by operators only",
    "*.DataNode.__init__.*": "nodes are made by operators only",
    "*tfrecord.float32": "an element type instead of a number that only DALI knows",
    "*tfrecord.int64": "an element type instead of a number that only DALI knows",
    "*tfrecord.string": "an element type instead of a number that only DALI knows",
    "ops.*TFRecord*.__init__.features": "needed all the same: Python has no order for it",
    "ops.TFRecordReader.__call__.inputs": "a reader has no inputs",
    "ops.readers.TFRecord.__call__.inputs": "a reader has no inputs",
    "*.readers.T*ecord*.index_path": "None: the index is made when the pipeline is built",
    "*tfrecord_reader.index_path": "None: the index is made when the pipeline is built",
    "ops.TFRecordReader.__init__.index_path": "None: the index is made when the pipeline is built",
    "ops.readers.TFRecord.__init__.index_path": "None: the index is made when the pipeline is built",
    "*.DLTensorPythonFunction.__init__.device": "None: that of the inputs",
    "*.PythonFunction.__init__.device": "None: that of the inputs",
    "*external_source*.device": "None is the CPU",
    "*ExternalSource*.device": "None is the CPU",
    "*external_source*.bytes_per_sample_hint": "0 is what DALI's None means",
    "*ExternalSource*.bytes_per_sample_hint": "0 is what DALI's None means",
    "plugin.pytorch.fn.torch_python_function.batch_processing": "the default of DALI's class, which counts, is False",
    "experimental.dynamic.imread.*": "taken as **arguments, with those of decoders.image",
    "experimental.dynamic.*readers.*.__call__.*": _AT_ONCE,
    "fn.ssd_random_crop.*": "random_bbox_crop under an old name; the images are cut by fn.slice",
    "fn.hidden.ssd_random_crop.*": "random_bbox_crop under an old name; the images are cut by fn.slice",
    "ops.hidden.SSDRandomCrop.*": "random_bbox_crop under an old name; the images are cut by fn.slice",
    "ops.hidden.FastResizeCropMirror.__call__.antialias": "the default of the constructor counts",
    "*tfrecord.Feature.__init__.*": "FixedLenFeature and VarLenFeature make it",
    "ops.*.schema_name": _SAME_SCHEMA,
}


def _spellings(name: str) -> list[str]:
    """Return the paths of an operator's argument: of the function, of the class, under old names."""
    *path, operator, argument = name.split(".")
    prefix = "".join(f"{part}." for part in path)
    made = pascal_case(operator)
    found = [f"fn.{prefix}{operator}.{argument}", f"ops.{prefix}{made}.__*__.{argument}"]
    if operator == "external_source":
        found.append(f"external_source.external_source.{argument}")
    for old in _OLD.get(f"{prefix}{operator}", ()):
        *modules, last = old.split(".")
        before = "".join(f"{part}." for part in modules)
        found += [f"fn.{old}.{argument}", f"ops.{before}{pascal_case(last)}.__*__.{argument}"]
    return found


_OLD = {
    "decoders.image_slice": ("image_decoder_slice", "experimental.decoders.image_slice"),
    "resize_crop_mirror": ("fast_resize_crop_mirror", "hidden.fast_resize_crop_mirror"),
    "tensor_resize": ("experimental.tensor_resize", "experimental.hidden.tensor_resize"),
    "readers.video_resize": ("video_reader_resize", "hidden.video_reader_resize"),
}

FROM_DEFAULTS = {
    path: reason
    for name, case in CASES.items()
    for argument, reason in case.other_defaults.items()
    for path in _spellings(f"{name}.{argument}")
}
LEFT_OUT.update(FROM_DEFAULTS)

# Methods of schemas that are not compared: those for DALI's documentation, and those that only its executor calls.
NOT_IN_SCHEMAS: dict[str, str] = {
    "Dox": "the texts are dalify's own",
    "AliasFor": "old names share the schema of the modern one",
    "AllowsSequences": "only known while a graph runs",
    "AppendKwargsSection": "about DALI's documentation",
    "CalculateAdditionalOutputs": "about a spec",
    "CalculateOutputDType": "about a spec",
    "CalculateOutputLayout": "about a spec",
    "CalculateOutputNDim": "about a spec",
    "CalculateOutputs": "about a spec",
    "CanUseAutoInputDox": "about DALI's documentation",
    "CheckArgs": "about a spec",
    "DeprecatedInVersion": "versions of DALI",
    "DeprecationMessage": "the texts are dalify's own",
    "GetCallDox": "about DALI's documentation",
    "GetCallSignatureInputs": "about DALI's documentation",
    "GetInputDevice": "only known while a graph is made",
    "GetInputType": "about DALI's documentation",
    "GetSupportedLayouts": "the rule of an operator decides, not a list",
    "HasCallDox": "about DALI's documentation",
    "HasOutputFn": "about DALI's executor",
    "HasRandomStateArg": "about DALI's executor",
    "IsAbstract": "about DALI's executor",
    "IsDocPartiallyHidden": "about DALI's documentation",
    "IsSequenceOperator": "about DALI's executor",
    "SupportsInPlace": "about DALI's executor",
    "SupportsVolumetric": "the rule of an operator decides, not a flag",
}
_THERE = {"Dox", "AliasFor", "CalculateOutputs", "DeprecationMessage"}
LEFT_OUT.update({f"backend_impl.OpSchema.{name}": why for name, why in NOT_IN_SCHEMAS.items() if name not in _THERE})

# "schema.method", "schema.argument" or "schema.argument.method": where a schema says something else.
SCHEMA_DIFFERENCES: dict[str, str] = {
    "DumpImage.IsNoPrune": "what writes a file does so although nobody uses its output",
    "FileReader.HasRandomSeedArg": _SAME_SCHEMA,
    "MXNetReader.HasRandomSeedArg": _SAME_SCHEMA,
    "NumpyReader.HasRandomSeedArg": _SAME_SCHEMA,
    "SequenceReader.HasRandomSeedArg": _SAME_SCHEMA,
    "Squeeze.axes": "DALI's schema allows a graph value, and the operator then takes it for missing",
    "decoders__Video.pad_mode": "a string, which no graph value is",
    "experimental__readers__Video.pad_mode": "a string, which no graph value is",
    "MultiPaste.MaxNumInput": "any number",
    **{
        f"MultiPaste.{name}.ArgSupportsPerFrameInput": "DALI's operator fails for every sequence on the CPU"
        for name in ("in_anchors", "in_anchors_rel", "out_anchors", "out_anchors_rel", "shapes", "shapes_rel")
    },
    "transforms__Combine.MaxNumInput": "any number",
    "SSDRandomCrop.MinNumInput": "random_bbox_crop under an old name",
    "SSDRandomCrop.MaxNumInput": "random_bbox_crop under an old name",
    "Shapes.IsDeprecated": "fn.shapes stays beside DataNode.shape()",
    "readers__Sequence.IsDeprecated": "a reader of its own; nothing replaces it",
    **{
        f"experimental__{name}.{method}": "DALI's old names say nothing of their inputs"
        for name in ("AudioResample", "Inflate", "TensorResize", "decoders__Video")
        for method in ("MinNumInput", "MaxNumInput")
    },
}
