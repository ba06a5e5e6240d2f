"""The text of an error about an option: the options, the value, and a suggestion."""

from __future__ import annotations

import pytest

from dalify import types
from dalify.base.errors import DecodeError, option_error_text


@pytest.mark.parametrize(
    ("value", "options", "suggestion"),
    [
        ("skp", ["raise", "skip"], " Did you mean 'skip'?"),
        ("Skip", ["raise", "skip"], " Did you mean 'skip'?"),
        ("cuda", ["cpu", "gpu"], " Did you mean 'gpu'?"),
        ("CUDA:0", ["cpu", "gpu"], " Did you mean 'gpu'?"),
        ("mps", ["cpu", "gpu"], " Did you mean 'gpu'?"),
        ("cuda", ["raise", "skip"], ""),
        ("linear", ["types.INTERP_NN", "types.INTERP_LINEAR"], " Did you mean types.INTERP_LINEAR?"),
        ("float32", ["types.INT32", "types.FLOAT"], " Did you mean types.FLOAT?"),
        ("zebra", ["raise", "skip"], ""),
        (3, ["raise", "skip"], ""),
        (None, ["raise", "skip"], ""),
        (types.UINT8, [types.INT16, types.INT32], ""),  # a member of an enumeration is not misspelled
    ],
)
def test_suggestions(value: object, options: list[object], suggestion: str) -> None:
    text = option_error_text("mode", value, options)
    assert text.startswith(f"mode must be one of {options[0]}, {options[1]}; got {value!r}.")
    assert text.partition(f"{value!r}.")[2] == suggestion


def test_the_position_of_a_sample_is_one_line() -> None:
    error = DecodeError("damaged.")
    error.locate(sample=3, origin="/photos/\u00e9 a\nb\0\udcff.jpg")
    assert str(error).splitlines()[1:] == ["  sample 3 of the batch, from /photos/\u00e9 a\\nb\\x00\\udcff.jpg"]
