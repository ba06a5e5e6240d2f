"""Calls that decode an image file in the ``__getitem__`` of a user's dataset, see `image_getitem`.

torchvision returns tensors, OpenCV arrays with the channels in the order blue, green, red. Methods usually reverse this
order, and may convert the array to an image of Pillow.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image

from dalify.plugin.pytorch.dropin.getitem import MISSING, NotEvaluatedError
from dalify.plugin.pytorch.dropin.opening import Decoder, decodes_array, matches_opencv, matches_torchvision

_TENSOR_OPTIONS = "mode", "apply_exif_orientation"
_ARRAY_OPTIONS = ("flags",)
_REVERSED = (":, :, ::-1", "..., ::-1")
_COPIES = (np.array, np.asarray, np.ascontiguousarray)


class Conversion(NamedTuple):
    """A conversion of an array.

    Attributes:
        argument: the expression of the array.
        function: the conversion.
        is_reversal: whether it reverses the order of the channels.
        gives_images: whether it returns a Pillow image.
    """

    argument: ast.expr
    function: Callable[[Any], Any]
    is_reversal: bool = False
    gives_images: bool = False

    def of(self, decoder: Decoder) -> Decoder:
        """Return a decoder with this conversion; NotEvaluatedError for one that returns tensors."""
        if decoder.gives_tensors:
            raise NotEvaluatedError
        is_blue_first = decoder.is_blue_first != self.is_reversal
        return decoder.then(self.function, is_blue_first=is_blue_first, gives_images=self.gives_images)


def decoder_of(function: Any, call: ast.Call, option: Callable[[ast.expr], Any]) -> tuple[bool, Decoder]:
    """Return whether a call returns three channels for any file, and the decoder.

    Args:
        function: the function that is called.
        call: the call.
        option: returns the value of an argument that is the same for all samples.

    Raises:
        NotEvaluatedError: the arguments are not supported, or the results would differ.
    """
    names = _ARRAY_OPTIONS if decodes_array(function) else _TENSOR_OPTIONS
    given: dict[Any, ast.expr] = dict(zip(names, call.args[1:], strict=False))
    given.update({keyword.arg: keyword.value for keyword in call.keywords})
    options = {name: option(value) for name, value in given.items()}
    if decodes_array(function):
        flags = options.pop("flags", cv2.IMREAD_COLOR)
        is_color = type(flags) is int and flags in (cv2.IMREAD_COLOR, cv2.IMREAD_COLOR_RGB)
        if options or not is_color or not matches_opencv():
            raise NotEvaluatedError
        decode = partial(function, flags=flags)
        return True, Decoder(decode, is_blue_first=flags == cv2.IMREAD_COLOR, rotates=True)
    mode = options.pop("mode", "UNCHANGED")
    name = str(getattr(mode, "name", mode)).upper()
    are_defaults = all(name in _TENSOR_OPTIONS and value is False for name, value in options.items())
    if name not in ("RGB", "UNCHANGED") or not are_defaults or not matches_torchvision():
        raise NotEvaluatedError
    return name == "RGB", Decoder(partial(function, mode=mode), gives_tensors=True)


def conversion_of(expression: ast.expr, resolved: Callable[[ast.expr], Any]) -> Conversion | None:
    """Return the conversion that an expression may be; None for other expressions.

    Args:
        expression: the expression.
        resolved: returns the value of a name or attribute that is the same for all samples.
    """
    match expression:
        case ast.Call(func=function, args=[argument, code], keywords=[]) if resolved(function) is cv2.cvtColor:
            if resolved(code) == cv2.COLOR_BGR2RGB:  # the number of COLOR_RGB2BGR, too
                return Conversion(argument, partial(cv2.cvtColor, code=cv2.COLOR_BGR2RGB), is_reversal=True)
        case ast.Call(func=ast.Attribute(value=argument, attr="copy"), args=[], keywords=[]):
            return Conversion(argument, methodcaller("copy"))
        case ast.Call(func=function, args=[argument], keywords=[]):
            called = resolved(function)
            if called is Image.fromarray:
                return Conversion(argument, Image.fromarray, gives_images=True)
            if called is not MISSING and any(called is copy for copy in _COPIES):
                return Conversion(argument, called)
        case ast.Subscript(value=argument, slice=ast.Tuple() as window):
            if ast.unparse(window).strip("()") in _REVERSED:
                return Conversion(argument, _reverse_channels, is_reversal=True)
        case _:
            pass
    return None


def name_of_check(statement: ast.stmt) -> str:
    """Return the name of a variable if the statement only raises an error if it is None; empty for others."""
    match statement:
        case ast.If(
            test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]),
            body=[ast.Raise()],
            orelse=[],
        ):
            return name
        case ast.Assert(
            test=ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)])
        ):
            return name
        case _:
            return ""


def _reverse_channels(image: Any) -> Any:
    return image[..., ::-1]
