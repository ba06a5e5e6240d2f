"""Functions, methods and values that several threads can use at the same time."""

from __future__ import annotations

import ast
import io
import os
import os.path
import pathlib
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.sample_form import is_named_tuple

_SIMPLE_TYPES = (type(None), bool, int, float, str, bytes, pathlib.PurePath, np.generic)
_PANDAS_TYPES = ("DataFrame", "Series", "Index", "RangeIndex")
_SAFE_FUNCTIONS = frozenset(
    {
        abs, all, any, bool, bytes, dict, divmod, enumerate, float, int, isinstance, len, list, max, min, range, repr,
        round, set, sorted, str, sum, tuple, type, zip, os.fspath, os.path.basename, os.path.dirname, os.path.exists,
        os.path.join, os.path.normpath, os.path.split, os.path.splitext, pathlib.Path, pathlib.PurePath, np.arange,
        np.array, np.asarray, np.ascontiguousarray, np.concatenate, np.expand_dims, np.full, np.isin, np.ones,
        np.ones_like, np.stack, np.transpose, np.unique, np.where, np.zeros, np.zeros_like, cv2.cvtColor, cv2.imread,
        cv2.resize, io.BytesIO, Image.open, torch.arange, torch.as_tensor, torch.cat, torch.from_numpy, torch.full,
        torch.is_tensor, torch.ones, torch.ones_like, torch.stack, torch.tensor, torch.where, torch.zeros,
        torch.zeros_like, torch.nn.functional.one_hot, AssertionError, FileNotFoundError, IndexError, KeyError, OSError,
        RuntimeError, TypeError, ValueError,
    }
)  # fmt: skip
_TENSOR_CLASSES = (torch.FloatTensor, torch.IntTensor, torch.LongTensor, torch.Tensor)
_SAFE_METHODS = frozenset(
    {
        "astype", "bool", "byte", "capitalize", "clone", "contiguous", "convert", "copy", "count", "double", "encode",
        "endswith", "flatten", "float", "format", "get", "index", "int", "item", "items", "join", "joinpath", "keys",
        "long", "lower", "lstrip", "mean", "numpy", "partition", "permute", "removeprefix", "removesuffix", "replace",
        "reshape", "resize", "rpartition", "rsplit", "rstrip", "split", "squeeze", "startswith", "strip", "sum",
        "title", "to", "to_dict", "to_list", "to_numpy", "tolist", "transpose", "unsqueeze", "upper", "values", "view",
        "with_name", "with_suffix", "zfill",
    }
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, set, frozenset, range, np.ndarray, np.memmap, torch.Tensor)


def is_safe_function(function: Any) -> bool:
    """Return whether threads can call a function or create instances of a class, which draw no random numbers."""
    is_class = isinstance(function, type)
    if is_class and issubclass(function, torch.Tensor) and function.__module__.startswith("torchvision.tv_tensors"):
        return True
    return any(function is each for each in (*_SAFE_FUNCTIONS, *_TENSOR_CLASSES)) or (
        is_class and (issubclass(function, np.generic) or is_named_tuple(function))
    )


def is_safe_method(name: str) -> bool:
    """Return whether threads can call a method of this name: of strings, paths, containers, arrays and tables."""
    return name in _SAFE_METHODS


def writes_argument(call: ast.Call) -> bool:
    """Return whether a call may write its result into an argument, which may be data of the dataset."""
    return any(keyword.arg in (None, "inplace", "out") for keyword in call.keywords)


def is_safe_value(value: Any) -> bool:
    """Return whether threads can read the elements and attributes of a value."""
    kind = type(value)
    is_table = kind.__module__.split(".")[0] == "pandas" and kind.__name__ in _PANDAS_TYPES
    return kind in _CONTAINERS or isinstance(value, _SIMPLE_TYPES) or is_table
