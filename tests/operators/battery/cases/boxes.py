"""Cases of operators: boxes, points and matrices."""

from __future__ import annotations

import numpy as np

from tests.operators.battery import references as by
from tests.operators.battery.case import DRAWN, GONE, Case, Data, each, exact_case, float_case
from tests.operators.battery.changes import dtypes, options
from tests.operators.battery.data import ANGLES, BOX_LABELS, BOXES, FACTORS, POINTS, SIGNS, TRANSFORMS, anchors

CASES: dict[str, Case] = {
    "bbox_rotate": float_case(
        BOXES,
        angle=ANGLES,
        input_shape=[28, 36],
        variants={
            "xywh": {"bbox_layout": "xyWH"},
            "keep_size": {"keep_size": True},
            "size": {"size": [50.0, 40.0]},
            "normalized": {"bbox_normalized": True},
            "pixels": {
                "bbox_normalized": False,
                "inputs": (Data([box * 28 for box in BOXES.samples]),),
            },
            **options("mode", "expand", "halfway", "fixed"),
            "labels": {"inputs": (BOXES, BOX_LABELS)},
            "remove": {"keep_size": True, "remove_threshold": 0.7},
            "WHC": {"input_shape": [36, 28, 3], "shape_layout": "WHC"},
        },
        refused={
            "one dimension": "DALI prints an error and returns what was in memory",
            "three dimensions": "DALI prints an error and returns what was in memory",
        },
        waits=["copies from the device @ kernels/boxes/box_rotation.py:rotate_boxes_on_device"],
    ),
    "box_encoder": float_case(
        BOXES,
        BOX_LABELS,
        anchors=anchors(40),
        offset=True,
        stds=[0.1, 0.1, 0.2, 0.2],
        variants={
            "no offset": {"offset": False},
            "criteria": {"criteria": 0.3},
            "means": {"means": [0.1, 0.2, 0.0, 0.0], "scale": 300.0},
        },
        refused={
            "nothing": "a label without a box; DALI takes no notice of it",
            "one dimension": "boxes are rows of four; DALI takes any four numbers in a row",
            "one row": "a label without a box; DALI takes no notice of it",
            "three dimensions": "boxes are rows of four; DALI takes any four numbers in a row",
        },
    ),
    "random_bbox_crop": exact_case(
        BOXES, BOX_LABELS, thresholds=[0.1, 0.5], scaling=[0.3, 1.0], not_compared_with_dali=DRAWN
    ),
    "bb_flip": float_case(
        BOXES,
        horizontal=SIGNS,
        vertical=1,
        ltrb=True,
        variants={
            "xywh": {"ltrb": False},
            "vertical only": {"horizontal": 0},
            "neither": {"horizontal": 0, "vertical": 0},
            "out of range": {"inputs": (Data([box * 3 - 1 for box in BOXES.samples]),)},
        },
        reference=by.close(by.mirrored_boxes),
    ),
    "bbox_paste": float_case(
        BOXES,
        ratio=2.5,
        paste_x=0.25,
        ltrb=True,
        variants={
            "smaller": {"ratio": 0.6},
            "xywh": {"ltrb": False},
            "per sample": {"ratio": each([1, 2, 1, 1, 1, 3]), "paste_y": FACTORS},
        },
        reference=by.close(by.moved_boxes),
    ),
    "coord_flip": float_case(
        POINTS,
        layout="xy",
        variants={
            "flip_y": {"flip_y": 1},
            "none": {"flip_x": 0},
            "center": {"center_x": 0.25, "flip_x": SIGNS},
            "xyz": {"layout": "xyz", "inputs": (Data([np.ones((3, 3), np.float32)] * 6),), "flip_z": 1},
            "layout=yx": {"layout": "yx"},
        },
        reference=by.close(lambda x, layout: np.stack([1 - x[:, 0], x[:, 1]], axis=1)),
    ),
    "coord_transform": float_case(
        POINTS,
        M=[0.5, 2.0, -1.0, 3.0],
        T=[10.0, -5.0],
        variants={
            "default": {"only": True},
            "MT": {"only": True, "MT": [0.5, 0.1, 3.0, -0.2, 1.5, -4.0]},
            "M": {"only": True, "M": 2.0},
            "to three": {"only": True, "M": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]},
            "per sample": {"only": True, "MT": each([[[1, 0, 2], [0, 1, 3]]] * 5 + [[[2, 0, 1], [0, -1, 1]]])},
            **dtypes("INT16", "UINT8", "FLOAT"),
        },
        different={"nothing": "no points are still points of two coordinates; DALI forgets their number"},
        reference=by.close(lambda x, **given: (x @ np.reshape(given["M"], (2, 2)).T + given["T"]).astype(np.float32)),
    ),
    "transforms.combine": float_case(
        TRANSFORMS,
        TRANSFORMS,
        variants={
            "reverse_order": {"reverse_order": True},
            "three": {"inputs": (TRANSFORMS, TRANSFORMS, TRANSFORMS)},
            "one": {"inputs": (TRANSFORMS,)},
        },
        reference=by.close(by.combined, by.BY_NUMPY),
    ),
    "transforms.crop": float_case(
        from_start=[10.0, 20.0],
        from_end=[110.0, 90.0],
        to_start=[0.0, 0.0],
        to_end=[1.0, 1.0],
        variants={
            "absolute": {"absolute": True},
            "default": {"only": True},
            "three": {"only": True, "from_start": [1.0, 2.0, 3.0], "from_end": [3.0, 4.0, 5.0]},
            "onto a matrix": {"inputs": (TRANSFORMS,)},
            "reverse_order": {"inputs": (TRANSFORMS,), "reverse_order": True},
            "flipped": {"from_start": [110.0, 20.0], "from_end": [10.0, 90.0]},
        },
        reference=by.close(by.taken),
    ),
    "transforms.rotation": float_case(
        angle=ANGLES,
        center=[5.0, 7.0],
        variants={
            "axis": {"axis": [1.0, 2.0, 3.0], "center": [1.0, 2.0, 3.0]},
            "no center": {"center": GONE},
            "onto a matrix": {"inputs": (TRANSFORMS,)},
            "reverse_order": {"inputs": (TRANSFORMS,), "reverse_order": True},
            "out of range": {"angle": 1e6},
        },
        reference=by.close(by.turned, by.SCIPY),
    ),
    "transforms.scale": float_case(
        scale=[2.0, 0.5],
        center=[5.0, 7.0],
        variants={
            "three": {"only": True, "scale": [1.0, 2.0, 3.0]},
            "ndim": {"only": True, "scale": 2.0, "ndim": 3},
            "onto a matrix": {"inputs": (TRANSFORMS,)},
            "per sample": {"only": True, "scale": each([[1, 2]] * 5 + [[3, 4]])},
            "zero": {"scale": [0.0, 1.0]},
        },
        reference=by.close(lambda scale, center: by.about(np.diag(scale), center)),
    ),
    "transforms.shear": float_case(
        shear=[0.2, -0.1],
        center=[5.0, 7.0],
        variants={
            "angles": {"only": True, "angles": [20.0, -10.0]},
            "three": {"only": True, "shear": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
            "onto a matrix": {"inputs": (TRANSFORMS,)},
        },
        reference=by.close(lambda shear, center: by.about(np.array([[1, shear[0]], [shear[1], 1]]), center)),
    ),
    "transforms.translation": float_case(
        offset=[3.0, -4.0],
        variants={
            "three": {"offset": [1.0, 2.0, 3.0]},
            "onto a matrix": {"inputs": (TRANSFORMS,)},
            "reverse_order": {"inputs": (TRANSFORMS,), "reverse_order": True},
            "per sample": {"offset": each([[1, 2]] * 5 + [[3, 4]])},
            "ndim": {"offset": 3.0, "ndim": 2},
        },
        reference=by.close(lambda offset: np.column_stack([np.eye(2), offset]).astype(np.float32)),
    ),
}
