"""Cases of operators: sequences and segmentation."""

from __future__ import annotations

from tests.operators.battery.case import DRAWN, NO_CPU, Case, exact_case, float_case
from tests.operators.battery.data import MASK_NUMBERS, MASKS, OBJECTS, POLYGONS, SIGNS, VERTICES, VIDEO

CASES: dict[str, Case] = {
    "optical_flow": float_case(VIDEO, not_compared_with_dali=NO_CPU),
    "segmentation.random_mask_pixel": exact_case(MASKS, foreground=SIGNS, not_compared_with_dali=DRAWN),
    "segmentation.random_object_bbox": exact_case(
        OBJECTS,
        foreground_prob=0.8,
        not_compared_with_dali=DRAWN,
        other_defaults={"background": "None is 0, or, if 0 is a class, a label that is not a class"},
    ),
    "segmentation.select_masks": exact_case(
        MASK_NUMBERS,
        POLYGONS,
        VERTICES,
        reindex_masks=True,
        variants={
            "numbers are kept": {"reindex_masks": False},
        },
    ),
}
