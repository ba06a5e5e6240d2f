"""One `Case` for each operator, by subject."""

from __future__ import annotations

from tests.operators.battery.case import Case
from tests.operators.battery.cases import (
    audio,
    boxes,
    color,
    decoders,
    filters,
    functions,
    geometry,
    random_numbers,
    readers,
    sequences,
    tensors,
)

CASES: dict[str, Case] = {
    **audio.CASES,
    **boxes.CASES,
    **color.CASES,
    **decoders.CASES,
    **filters.CASES,
    **functions.CASES,
    **geometry.CASES,
    **random_numbers.CASES,
    **readers.CASES,
    **sequences.CASES,
    **tensors.CASES,
}
