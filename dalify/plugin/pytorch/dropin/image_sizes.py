"""The size of the image in the ``__getitem__`` of a user's dataset: ``size``, ``width`` and ``height`` of the image.

Methods for detection need it for their boxes, before the image is transformed. It is read from the file's header.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from PIL import Image

from dalify.plugin.pytorch.dropin.hints import note_failed_file
from dalify.plugin.pytorch.dropin.image_symbols import PATH, OpenedImage, loaded
from dalify.plugin.pytorch.dropin.working_folder import FOLDER, is_path

HEADER = "dalify_header"
"""The variable with the function that returns an image with the size of that of a path."""

_SIZES = ("height", "size", "width")
_SIMPLE_STATEMENTS = ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return
# Pillow may change the size of other images when it decodes them.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "WEBP")


def with_sizes(statement: ast.stmt, symbols: dict[str, Any]) -> ast.stmt:
    """Return a statement with the header's size in place of the size of an image that Pillow opens.

    Args:
        statement: a statement; blocks are returned unchanged.
        symbols: the values of variables.
    """
    images = {name for name, value in symbols.items() if _is_untransformed(value)}
    if not isinstance(statement, _SIMPLE_STATEMENTS) or not any(_is_size(node, images) for node in ast.walk(statement)):
        return statement
    return _Headers(images).visit(deepcopy(statement))


def _is_untransformed(value: Any) -> bool:
    return isinstance(value, OpenedImage) and value.decode is None and not value.transforms


def _is_size(node: ast.AST, images: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name in images and attribute in _SIZES
        case _:
            return False


class _Headers(ast.NodeTransformer):
    """Replaces ``image.size`` by ``dalify_header(dalify_folder(dalify_path)).size``."""

    def __init__(self, images: set[str]) -> None:
        self._images = images

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the changed attribute."""
        self.generic_visit(node)
        if _is_size(node, self._images):
            path = ast.Call(loaded(FOLDER), [loaded(PATH)], [])
            node.value = ast.Call(loaded(HEADER), [path], [])
        return node


def header_of(opens_files: bool) -> Callable[[Any], Image.Image]:
    """Return a function that returns an image with the size of that of a path.

    Args:
        opens_files: whether Pillow receives an open file instead of its path; its errors differ.
    """

    def header(path: Any) -> Any:
        if isinstance(path, np.ndarray):
            return Image.fromarray(path)
        if isinstance(path, Image.Image):
            return path
        try:
            if isinstance(path, io.BytesIO):
                return _opened(io.BytesIO(path.getvalue()))
            if opens_files and is_path(path):
                with open(path, "rb") as file:  # noqa: PTH123 -- the path may be bytes
                    return _opened(file)
            return _opened(path)
        except Exception as error:
            if is_path(path):
                note_failed_file(error, path)
            raise

    return header


def _opened(file: Any) -> Image.Image:
    with Image.open(file) as image:
        if image.format not in _FORMATS:
            image.load()
        return image
