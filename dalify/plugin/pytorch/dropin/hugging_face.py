"""Datasets of Hugging Face with a function of batches that transforms images, set by ``set_transform``.

For example::

    def transform_images(examples):
        examples["pixel_values"] = [transform(image.convert("RGB")) for image in examples["image"]]
        del examples["image"]
        return examples

    dataset = load_dataset("imagefolder", data_dir="photos", split="train").with_transform(transform_images)

The dataset is read with another function: it gets images that are not yet decoded, and calls transforms of dalify in
place of torchvision's. Both behave like the originals, so the rest of the function may be any Python code. Threads call
it if it only calls functions that are known; otherwise torch's worker processes do.
"""

from __future__ import annotations

import ast
import builtins
import io
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from dalify.base.wording import counted
from dalify.plugin.pytorch.dropin.draws import RandomStates, TorchDraws
from dalify.plugin.pytorch.dropin.encoded_image import EncodedImage, contents_of, plain_jpeg_header
from dalify.plugin.pytorch.dropin.getitem import MISSING, attribute_of, syntax_of
from dalify.plugin.pytorch.dropin.hints import note_failed_file
from dalify.plugin.pytorch.dropin.image_symbols import InnerImages, OpenedImage
from dalify.plugin.pytorch.dropin.lowering import Lowered, lower_transform
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError
from dalify.plugin.pytorch.dropin.sources import Source
from dalify.plugin.pytorch.dropin.thread_safety import is_safe_function, is_safe_method, is_safe_value, writes_argument
from dalify.plugin.pytorch.dropin.torchvision_steps import PythonContainer

_ORIENTATION = 0x0112  # tag of EXIF
_TURNED = range(2, 9)
_METHODS = ("append", "convert", "extend", "pop", "update")
_NODES = (
    ast.Assign, ast.AnnAssign, ast.Assert, ast.AugAssign, ast.Delete, ast.Expr, ast.For, ast.If, ast.Pass, ast.Return,
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.DictComp,
    ast.FormattedValue, ast.GeneratorExp, ast.IfExp, ast.JoinedStr, ast.List, ast.ListComp, ast.Name, ast.Slice,
    ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp,
)  # fmt: skip


def is_hugging_face(dataset: Any) -> bool:
    """Return whether a dataset has the methods of Hugging Face's datasets with random access."""
    kind: Any = getattr(sys.modules.get("datasets.arrow_dataset"), "Dataset", None)
    names = "__getitem__", "__getitems__"
    return kind is not None and all(getattr(type(dataset), name, None) is getattr(kind, name) for name in names)


def _with_encoded_images(dataset: Any) -> tuple[Any, dict[str, Any]]:
    """Return a dataset whose images are dictionaries of bytes and path, and the features of the columns with images.

    Raises:
        NotRecognizedError: there are no images, or Hugging Face decodes other columns.
    """
    package = sys.modules["datasets"]
    found = {name: each for name, each in dataset.features.items() if type(each) is package.Image and each.decode}
    if not found:
        raise NotRecognizedError("the dataset of Hugging Face has no column of images")
    plain = copy(dataset)
    plain.reset_format()
    for name in found:
        plain = plain.cast_column(name, package.Image(decode=False))
    for name, feature in plain.features.items():
        if package.features.features.require_decoding(feature):
            raise NotRecognizedError(f"Hugging Face decodes the column {name!r} of the dataset")
    return plain, found


def _opened(feature: Any, value: Any) -> Any:
    """Return the image that Hugging Face decodes, or one that becomes it when it is used."""
    if value is None:
        return None

    def load() -> Image.Image:
        try:
            return feature.decode_example(value)
        except Exception as error:
            if value["path"] is not None:
                note_failed_file(error, value["path"])
            raise

    data: bytes = value["bytes"] or b""
    if value["bytes"] is None and "://" not in (value["path"] or "://"):
        with suppress(OSError):
            data = contents_of(value["path"])
    header = plain_jpeg_header(data)
    if header is not None:
        with suppress(Exception), Image.open(io.BytesIO(data)) as file:
            orientation = file.getexif().get(_ORIENTATION)
            is_plain = type(file) is JpegImageFile and orientation not in _TURNED
            if is_plain and feature.mode in (None, file.mode):
                file_format = file.format if orientation is None else None  # a turned image is a copy
                return EncodedImage(file.mode, data, header, file.info, load, file_format)
    return load()


class _Current(threading.local):
    """The random numbers of a thread."""

    draws: TorchDraws | None = None


_current = _Current()


class _InThread(Lowered):
    """A transform that draws the random numbers of the current thread."""

    def draws(self) -> TorchDraws:
        """Return the random numbers of this thread."""
        return super().draws() if _current.draws is None else _current.draws


class _BatchFunction:
    """A function of batches, and a copy of it with faster transforms.

    Args:
        function: the function, a method, or an object that can be called.

    Attributes:
        name: name of the function.
        transforms: the transforms that are replaced in the copy.
        user_code: the first part that several threads may not be able to run at the same time; empty for none.
        call: the copy.

    Raises:
        NotRecognizedError: the function cannot be analyzed, or calls no supported transforms.
    """

    def __init__(self, function: Any) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._owner: Any = None
        if isinstance(function, MethodType):
            self._owner, function = function.__self__, function.__func__
        elif not isinstance(function, FunctionType):
            self._owner, function = function, type(function).__call__
        definition = syntax_of(function) if isinstance(function, FunctionType) else None
        parameters = [] if definition is None else [parameter.arg for parameter in definition.args.args]
        is_method = self._owner is not None
        if (
            definition is None
            or len(parameters) != 1 + is_method
            or (is_method and not hasattr(self._owner, "__dict__"))
        ):
            hint = "Define it with def in a file, with the batch as its only argument."
            raise NotRecognizedError(f"the function {self.name} of set_transform cannot be analyzed", hint)
        self._function, self._self = function, parameters[0] if is_method else None
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._nodes = [node for statement in definition.body for node in ast.walk(statement)]
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in self._nodes):
            raise NotRecognizedError(f"{self.name} assigns variables of other functions or global variables")
        variables = [node for node in self._nodes if isinstance(node, ast.Name | ast.Attribute)]
        stored = {node.id for node in variables if isinstance(node, ast.Name) and _is_changed(node)}
        self._locals = {parameters[-1], *stored}
        self._values = [(node, self._resolved(node)) for node in variables]
        found = self._transforms()
        if not found:
            hint = "Call transforms of torchvision with one image, transform(image), in that function."
            raise NotRecognizedError(f"{self.name} calls no transform that dalify supports", hint)
        self.transforms = list(found.values())
        self.user_code = next(self._user_code(found), "")
        if self.user_code and is_method:
            hint = "Use a function instead of a method."
            raise NotRecognizedError(f"{self.name} is a method that uses {self.user_code}", hint)
        self.call = self._substituted(found)

    def is_current(self) -> bool:
        """Return whether the variables outside of the function are unchanged."""
        return all(self._resolved(node) is value for node, value in self._values)

    def _transforms(self) -> dict[str, Any]:
        """Return the transforms that the function only calls with one image, by the names of their variables."""
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        functions = {id(call.func) for call in calls if len(call.args) == 1 and not call.keywords}
        found, others = dict[str, Any](), set[str]()
        for node, value in self._values:
            name = ast.unparse(node)
            if id(node) not in functions:
                others.add(name)
            elif isinstance(node, ast.Name) or _root(node) == self._self == name.rpartition(".")[0]:
                is_object = callable(value) and not isinstance(value, type | FunctionType)
                if is_object and any(plan.names for plan in lower_transform(value, 3).plans()):
                    found[name] = value
        return {name: value for name, value in found.items() if name not in others}

    def _resolved(self, expression: ast.expr) -> Any:
        """Return a value that is the same for all samples; `MISSING` for other values."""
        match expression:
            case ast.Name(id=name) if name in self._cells:
                try:
                    return self._cells[name].cell_contents
                except ValueError:  # not yet assigned
                    return MISSING
            case ast.Name(id=name) if name not in self._locals and name != self._self:
                return self._function.__globals__.get(name, getattr(builtins, name, MISSING))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == self._self:
                return attribute_of(self._owner, attribute)
            case ast.Attribute(value=owner, attr=attribute):
                value = self._resolved(owner)
                if isinstance(value, ModuleType):
                    return getattr(value, attribute, MISSING)
                return attribute_of(value, attribute) if hasattr(value, "__dict__") else MISSING
            case _:
                return MISSING

    def _user_code(self, transforms: dict[str, Any]) -> Iterator[str]:
        """Yield the parts that several threads may not be able to run at the same time."""
        functions = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        for number, (name, transform) in enumerate(transforms.items()):
            plan = lower_transform(transform, 3)
            if (number and plan.reason is not None) or any(isinstance(step, PythonContainer) for step in plan.steps):
                yield name
        for node in self._nodes:
            if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, _NODES):
                yield ast.unparse(node).splitlines()[0]
            if isinstance(node, ast.Subscript) and _is_changed(node) and _root(node) not in self._locals:
                yield ast.unparse(node)
            if isinstance(node, ast.Call) and writes_argument(node):
                yield ast.unparse(node)
        attributes = [each for each, value in self._values if isinstance(each, ast.Attribute) and value is not MISSING]
        owners = {id(attribute.value) for attribute in attributes}
        for node, value in self._values:
            is_called, is_constant = id(node) in functions, isinstance(value, ModuleType | type | torch.dtype)
            match node:
                case _ if ast.unparse(node) in transforms or id(node) in owners:
                    is_safe = True
                case ast.Name(id=name) if name == self._self or name in self._locals:
                    is_safe = not is_called
                case ast.Attribute(attr=name) if value is MISSING:
                    is_method = is_safe_method(name) or (name in _METHODS and _root(node) in self._locals)
                    is_safe = (is_method or not is_called) and _root(node) != self._self
                case _:
                    is_safe = is_safe_function(value) or (not is_called and (is_safe_value(value) or is_constant))
            if not is_safe or (isinstance(node, ast.Attribute) and _is_changed(node)):
                yield ast.unparse(node)

    def _substituted(self, transforms: dict[str, Any]) -> Callable[[Any], Any]:
        """Return the function with other transforms in its variables."""
        function, faster = self._function, {name: _InThread(each) for name, each in transforms.items()}
        cells = (CellType(faster[name]) if name in faster else cell for name, cell in self._cells.items())
        variables = {**function.__globals__, **faster}
        found = FunctionType(function.__code__, variables, function.__name__, closure=tuple(cells))
        if self._owner is None:
            return found
        owner = object.__new__(type(self._owner))
        owner.__dict__.update(vars(self._owner))
        owner.__dict__.update({name.partition(".")[2]: each for name, each in faster.items() if "." in name})
        return MethodType(found, owner)


def _is_changed(node: Any) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _root(node: ast.expr) -> str:
    """Return the name of the variable with which an expression starts; empty for other expressions."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


class HuggingFaceSource(Source):
    """A dataset of Hugging Face with a function of batches.

    Raises:
        NotRecognizedError: the function, or another setting of the dataset, is not supported.
    """

    def __init__(self, dataset: Any) -> None:
        form = dataset.format
        self._plain, self._features = _with_encoded_images(dataset)
        if form["type"] != "custom" or form["output_all_columns"]:
            hint = "Transform the images in a function, dataset.set_transform(function), without output_all_columns."
            raise NotRecognizedError("the dataset of Hugging Face has no function that transforms batches", hint)
        self._function = _BatchFunction(form["format_kwargs"]["transform"])
        self._columns = form["columns"]
        transforms = self._function.transforms
        super().__init__(dataset, (transforms[0], None), 3, counted(len(dataset), "row"))
        self.transform = transforms  # all of them, to watch their attributes
        self.user_code = self._function.user_code
        self.user_function = self._function.name

    def samples(self, indices: list[Any], draws: TorchDraws) -> list[Any]:
        """Compute the samples of a batch.

        After an error, Hugging Face computes the batch, with its own errors.
        """
        return self._called(lambda: self._computed(indices), lambda: self.dataset.__getitems__(indices), draws)

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample; see `samples`."""
        return self._called(lambda: self._computed([index])[0], lambda: self.dataset[index], draws)

    def _called(self, compute: Callable[[], Any], of_hugging_face: Callable[[], Any], draws: TorchDraws) -> Any:
        is_process = draws.python is random  # in other threads, the function does not draw from NumPy or Python
        state, states = draws.get_state(), RandomStates.current() if is_process else None
        _current.draws = draws
        try:
            if not is_process or self._function.is_current():
                return compute()
        except Exception:
            draws.set_state(state)
            if states is not None:
                states.restore()
        finally:
            _current.draws = None
        with draws.as_default():
            return of_hugging_face()

    def _computed(self, indices: list[Any]) -> list[Any]:
        batch = {name: values for name, values in self._plain[indices].items() if name in self._columns}
        for name in self._features.keys() & batch.keys():
            batch[name] = [_opened(self._features[name], value) for value in batch[name]]
        batch = self._function.call(batch)
        count = len(batch[next(iter(batch))])
        return [{name: values[number] for name, values in batch.items()} for number in range(count)]

    def note_unreadable(self, error: Exception, indices: list[Any]) -> int | None:
        """Note the file of the first image that cannot be decoded; return its place in the batch, None for none."""
        for place, index in enumerate(indices):
            path = None
            try:
                row = self._plain[index]
                for name, feature in self._features.items():
                    if row[name] is not None:
                        path = row[name]["path"]
                        feature.decode_example(row[name])
            except Exception:
                if path is not None:
                    note_failed_file(error, path)
                return place
        return None


def hugging_face_images(dataset: Any) -> InnerImages:
    """Return the images of a dataset without a format, whose samples are dictionaries.

    Raises:
        NotRecognizedError: the samples have another form, or several images.
    """
    plain, features = _with_encoded_images(dataset)
    if dataset.format["type"] is not None or len(features) > 1:
        raise NotRecognizedError("the dataset of Hugging Face has a format, or several images")
    ((name, feature),) = features.items()

    def lookup(index: Any) -> tuple[Any, Any]:
        row = plain[index]
        if row[name] is None:
            raise ValueError("no image")
        return _opened(feature, row[name]), row

    return InnerImages(lookup, OpenedImage(False), True, {column: column == name for column in plain.column_names})
