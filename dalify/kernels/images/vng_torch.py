"""Demosaicing by variable number of gradients (Chang, Cheung and Pang, 1999), on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

_MARGIN = 2
_STRAIGHT = ((-1, 0), (1, 0), (0, -1), (0, 1))
_DIAGONAL = ((-1, 1), (1, -1), (-1, -1), (1, 1))


def demosaic_vng_torch(padded: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the colors R, G, B of mosaics, as OpenCV computes them for extents of at least 8.

    Values may differ by 1 in the last columns, where OpenCV uses no SIMD and rounds differently.

    Args:
        padded: mosaics with mirrored borders of 2 pixels, int32 [N, H + 4, W + 4].
        rows: which rows have blue pixels, booleans that broadcast to [N, H, W].
        columns: which columns have blue pixels, like `rows`.

    Returns:
        int32 [N, H, W, 3] from 0 to 255.
    """

    def value(y: int, x: int) -> Tensor:
        return _inner(padded, y, x, _MARGIN)

    is_green = rows != columns
    here = value(0, 0)
    straight, diagonal, turned, cross = _gradients(padded)
    gradients: list[Tensor] = []
    # For each direction twice the mean of three colors: for a red or blue pixel its own color, green, and the other
    # color; for a green pixel the color of its row, green, and the color of its column.
    colors: list[tuple[Tensor, Tensor, Tensor]] = []
    for y, x in _STRAIGHT:
        along = straight[0] if y else straight[1]
        gradients.append(_inner(along, 0, 0) + _inner(along, y, x))
        beside = value(2 * y + x, 2 * x + y) + value(2 * y - x, 2 * x - y)
        next_one, own = 2 * value(y, x), here + value(2 * y, 2 * x)
        opposite = value(y + x, x + y) + value(y - x, x - y)
        in_row, in_column = (beside, next_one) if y else (next_one, beside)
        colors.append(
            (
                torch.where(is_green, in_row, own),
                torch.where(is_green, own, next_one),
                torch.where(is_green, in_column, opposite),
            )
        )
    for y, x in _DIAGONAL:
        side = 0 if y != x else 1
        of_green, of_others = diagonal[side], turned[side]
        of_green = _inner(of_green, 0, 0) + _inner(of_green, y, 0) + _inner(of_green, 0, x) + _inner(of_green, y, x)
        gradients.append(torch.where(is_green, of_green, _inner(of_others, 0, 0) + _inner(of_others, y, x)))
        next_one, own = 2 * value(y, x), here + value(2 * y, 2 * x)
        colors.append(
            (
                torch.where(is_green, value(2 * y, x) + value(0, x), own),
                torch.where(is_green, next_one, _inner(cross, y, x)),
                torch.where(is_green, value(y, 0) + value(y, 2 * x), next_one),
            )
        )
    all_gradients = torch.stack(gradients)
    limit = all_gradients.amin(0) + (all_gradients.amax(0) >> 1).clamp(min=1)
    is_small = all_gradients < limit
    first, green, second = (
        torch.where(is_small, torch.stack(of_directions), 0).sum(0) for of_directions in zip(*colors, strict=True)
    )
    # Multiplied by the reciprocal as in OpenCV: a quotient would be rounded differently.
    base, weights = torch.where(is_green, green, first), (2 * is_small.sum(0)).reciprocal()

    def color(total: Tensor) -> Tensor:
        return (here + ((total - base) * weights).round().int()).clamp(0, 255)

    # Rows with blue pixels have no red ones, so the color of the row of a green pixel is blue there.
    other = color(second)
    own = torch.where(is_green, color(first), here)
    return torch.stack(
        [torch.where(rows, other, own), torch.where(is_green, here, color(green)), torch.where(rows, own, other)],
        dim=-1,
    )


def _inner(x: Tensor, dy: int, dx: int, margin: int = 1) -> Tensor:
    """Return the elements at the offset (dy, dx) from each element that is not in the margin."""
    height, width = x.shape[1] - 2 * margin, x.shape[2] - 2 * margin
    return x[:, margin + dy : margin + dy + height, margin + dx : margin + dx + width]


def _gradients(
    padded: Tensor,
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor], Tensor]:
    """Return differences of neighbors, and half the sums of the four nearest neighbors, each [N, H + 2, W + 2].

    Returns:
        differences along columns and rows; along both diagonals; along both diagonals with adjacent differences; sums.
    """

    def difference(y: int, x: int, other_y: int, other_x: int) -> Tensor:
        return (_inner(padded, y, x) - _inner(padded, other_y, other_x)).abs()

    column = difference(-1, -1, 1, -1) + 2 * difference(-1, 0, 1, 0) + difference(-1, 1, 1, 1)
    row = difference(-1, -1, -1, 1) + 2 * difference(0, -1, 0, 1) + difference(1, -1, 1, 1)
    rising, falling = 2 * difference(-1, 1, 1, -1), 2 * difference(-1, -1, 1, 1)
    turned_rising = rising + difference(-1, 0, 0, -1) + difference(1, 0, 0, 1)
    turned_falling = falling + difference(-1, 0, 0, 1) + difference(1, 0, 0, -1)
    cross = _inner(padded, -1, 0) + _inner(padded, 1, 0) + _inner(padded, 0, -1) + _inner(padded, 0, 1)
    return (column, row), (rising, falling), (turned_rising, turned_falling), cross >> 1
