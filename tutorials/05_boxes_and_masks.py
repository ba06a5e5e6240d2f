# %% [markdown]
"""# Boxes and masks

A geometric transformation of an image must also be applied to its boxes and masks. This tutorial builds the pipeline
that trains the detector SSD: zoom out (`paste`), crop around objects (`random_bbox_crop`, `slice`), mirror, and match
the boxes to the anchors of the network (`box_encoder`). Masks are images and are transformed by the same operators.

Here a callback generates exact boxes and masks. The contact sheets show whether they stay correct.
"""

# %%
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from photos import make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
BACKGROUNDS = sorted(FOLDER.glob("*/*.jpg"), key=lambda path: (path.name, path.parent.name))
CLASSES = ["", "disc", "square", "triangle"]  # 0 is the background's
COLORS = {1: (255, 70, 70), 2: (80, 220, 255), 3: (255, 220, 60)}
SIZE = 300


class Shapes:
    """Images of discs, squares and triangles on photographs, with their boxes, classes and masks."""

    def __call__(self, sample: types.SampleInfo) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return image uint8 HWC, boxes float32 [n, 4], classes int32 [n, 1], mask uint8 HW1."""
        random = np.random.default_rng(sample.idx_in_epoch)
        image = Image.open(BACKGROUNDS[sample.idx_in_epoch % len(BACKGROUNDS)]).convert("RGB")
        mask = Image.new("L", image.size)
        boxes, labels = [], []
        for _ in range(random.integers(1, 4)):
            side = random.uniform(0.2, 0.4) * min(image.size)
            left, top = random.uniform(0, image.width - side), random.uniform(0, image.height - side)
            if any(left < x2 and top < y2 and left + side > x1 and top + side > y1 for x1, y1, x2, y2 in boxes):
                continue  # a mask cannot represent overlapping shapes
            label = int(random.integers(1, 4))
            for canvas, color in ((image, COLORS[label]), (mask, label)):
                self.draw(ImageDraw.Draw(canvas), label, (left, top, left + side, top + side), color)
            boxes.append((left, top, left + side, top + side))
            labels.append([label])
        scale = np.array([image.width, image.height] * 2)
        relative = (np.array(boxes) / scale).astype(np.float32)
        return np.asarray(image), relative, np.array(labels, np.int32), np.asarray(mask)[..., None]

    @staticmethod
    def draw(canvas: ImageDraw.ImageDraw, label: int, box: tuple, color: int | tuple) -> None:
        left, top, right, bottom = box
        if label == 1:
            canvas.ellipse(box, fill=color)
        elif label == 2:
            canvas.rectangle(box, fill=color)
        else:
            canvas.polygon([(left, bottom), (right, bottom), ((left + right) / 2, top)], fill=color)


def read_shapes():
    """The input of all pipelines below."""
    return fn.external_source(
        source=Shapes(), num_outputs=4, batch=False, layout=["HWC", "", "", "HWC"],
        dtype=[types.UINT8, types.FLOAT, types.INT32, types.UINT8], ndim=[3, 2, 2, 3],
    )  # fmt: skip


# %% [markdown]
"""Here boxes are relative, from 0 to 1, in the order left, top, right, bottom. **Operators have different default
formats**, as in DALI: `random_bbox_crop` expects left, top, right, bottom (`ltrb=True`); `bbox_paste` and `bb_flip`
expect x, y, width, height unless `ltrb=True`. The wrong format raises no error but gives wrong boxes. To detect it,
draw the boxes on the images, as below.
"""


# %%
def with_boxes(image: np.ndarray, boxes: np.ndarray, colors: list) -> np.ndarray:
    """Draw boxes."""
    picture = Image.fromarray(image)
    canvas = ImageDraw.Draw(picture)
    scale = np.array([picture.width, picture.height] * 2)
    for box, color in zip(boxes, colors, strict=True):
        corners = (box * scale).round().tolist()
        canvas.rectangle(corners, outline="black", width=5)
        canvas.rectangle(corners, outline=color, width=3)
    return np.asarray(picture)


def show(file_name: str, images, boxes, labels) -> None:
    """Write a batch with its boxes."""
    sheet, captions = [], []
    for index in range(len(images)):
        names = [CLASSES[label] for label in labels.at(index).ravel()]
        sheet.append(with_boxes(images.at(index), boxes.at(index), ["white"] * len(names)))
        captions.append(", ".join(names))
    contact_sheet(OUT / file_name, sheet, captions)


@pipeline_def(batch_size=8, num_threads=2, seed=1)
def as_they_are():
    images, boxes, labels, _ = read_shapes()
    return images, boxes, labels


show("05_as_they_are.png", *as_they_are().run())

# %% [markdown]
"""## 1. The pipeline of SSD

1. *Zoom out*: half of the images are pasted on a larger canvas, at a random position. Image and boxes get the same
   `paste_x`, `paste_y`, `ratio`.
2. *Crop*: `random_bbox_crop` draws random windows until one overlaps an object sufficiently. It returns the window
   (`anchor`, `shape`) and the boxes in it, clipped to the window and relative to it. Boxes whose center is outside
   the window are removed with their labels.
3. `slice` crops the image, `resize` resizes it to the input size of the network. Relative boxes need no change.
4. *Mirror*: `flip` and `bb_flip` get the same random value.
"""


# %%
@pipeline_def(batch_size=16, num_threads=2, seed=12)
def ssd(stage: str):
    images, boxes, labels, _ = read_shapes()
    zooms_out = fn.random.coin_flip(probability=0.5, dtype=types.BOOL)
    if zooms_out:
        where = {
            "paste_x": fn.random.uniform(range=[0, 1]),
            "paste_y": fn.random.uniform(range=[0, 1]),
            "ratio": fn.random.uniform(range=[1, 2.5]),
        }
        images = fn.paste(images, fill_value=[104, 117, 123], **where)
        boxes = fn.bbox_paste(boxes, ltrb=True, **where)
    if stage == "zoomed out":
        return images, boxes, labels
    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes,
        labels,
        aspect_ratio=[0.5, 2.0],
        thresholds=[0, 0.1, 0.3, 0.5, 0.7, 0.9],
        scaling=[0.3, 1.0],
        bbox_layout="xyXY",
        allow_no_crop=True,
        num_attempts=50,
    )
    images = fn.slice(images, anchor, shape)
    images = fn.resize(images, size=[SIZE, SIZE])
    is_mirrored = fn.random.coin_flip(probability=0.5)
    images = fn.flip(images, horizontal=is_mirrored)
    boxes = fn.bb_flip(boxes, horizontal=is_mirrored, ltrb=True)
    images = fn.color_twist(
        images, brightness=fn.random.uniform(range=[0.8, 1.2]), saturation=fn.random.uniform(range=[0.6, 1.4])
    )
    if stage == "cropped and mirrored":
        return images, boxes, labels
    images = fn.crop_mirror_normalize(images, mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4])
    offsets, classes = fn.box_encoder(boxes, labels, anchors=ANCHORS.ravel().tolist(), criteria=0.5)
    return images, offsets, classes, boxes, labels


# The anchors of the network: boxes of three aspect ratios at each position of four grids.
ANCHORS = np.array(
    [
        [(x + 0.5) / cells - width / 2, (y + 0.5) / cells - height / 2,
         (x + 0.5) / cells + width / 2, (y + 0.5) / cells + height / 2]
        for cells, size in ((10, 0.2), (5, 0.35), (3, 0.5), (1, 0.85))
        for y in range(cells)
        for x in range(cells)
        for width, height in ((size, size), (size * 1.4, size / 1.4), (size / 1.4, size * 1.4))
    ],
    np.float32,
).clip(0, 1)  # fmt: skip

for stage in ("zoomed out", "cropped and mirrored"):
    show(f"05_ssd_{stage.replace(' ', '_')}.png", *ssd(stage).run())

# %% [markdown]
"""`box_encoder` assigns to each anchor the box that it overlaps by at least `criteria`. It returns a class per anchor
(0: background) and the box. The contact sheet shows the anchors with a box in the color of its class. Each object has
at least one anchor. Batches are dense although images have one, two or three objects, because every image has one
entry per anchor.
"""

# %%
images, offsets, classes, boxes, labels = ssd("encoded").run()
print("anchors:", ANCHORS.shape, " boxes:", offsets.as_array().shape, " classes:", classes.as_array().shape)
sheet, captions = [], []
for index in range(16):
    image = images.at(index).transpose(1, 2, 0) * [58.4, 57.1, 57.4] + [123.7, 116.3, 103.5]
    matched = classes.at(index).ravel()
    colors = [COLORS[label] for label in matched[matched > 0]]
    sheet.append(with_boxes(image.clip(0, 255).astype(np.uint8), ANCHORS[matched > 0], colors))
    captions.append(f"boxes: {len(boxes.at(index))}, anchors: {len(colors)}")
    assert set(matched[matched > 0]) == set(labels.at(index).ravel())
contact_sheet(OUT / "05_ssd_anchors.png", sheet, captions)

# %% [markdown]
"""## 2. Masks

A mask is an image of class indices. It needs the same geometric operators with the same random numbers. Class indices
must not be averaged, so the interpolation is `INTERP_NN`; pixels outside the source get 0, the background. A graph
value can be used twice: angle, window and mirror value are drawn once per sample and used for the image and the mask.
"""


# %%
@pipeline_def(batch_size=8, num_threads=2, seed=4)
def segmentation():
    images, _, _, masks = read_shapes()
    angle = fn.random.uniform(range=[-40, 40])
    images = fn.rotate(images, angle=angle, fill_value=0)
    masks = fn.rotate(masks, angle=angle, fill_value=0, interp_type=types.INTERP_NN)
    anchor, shape = fn.random_crop_generator(images.shape(), random_area=[0.4, 0.9])
    crop = {"start": anchor, "shape": shape, "axes": [0, 1]}
    images = fn.resize(fn.slice(images, **crop), size=[SIZE, SIZE])
    masks = fn.resize(fn.slice(masks, **crop), size=[SIZE, SIZE], interp_type=types.INTERP_NN)
    is_mirrored = fn.random.coin_flip()
    return fn.flip(images, horizontal=is_mirrored), fn.flip(masks, horizontal=is_mirrored)


images, masks = segmentation().run()
sheet, captions = [], []
for index in range(8):
    image, mask = images.at(index), masks.at(index)[..., 0]
    assert set(mask.ravel()) <= {0, 1, 2, 3}
    paint = np.zeros_like(image)
    for label, color in COLORS.items():
        paint[mask == label] = color
    sheet += [image, np.where(mask[..., None] > 0, image // 4 + paint // 4 * 3, image // 4)]
    found = sorted(CLASSES[label] for label in set(mask.ravel().tolist()) - {0})
    captions += ["image", ", ".join(found) or "nothing left"]
contact_sheet(OUT / "05_masks.png", sheet, captions)

# %% [markdown]
"""## 3. From COCO files

For a dataset on disk, use `fn.readers.coco` instead of the callback. `ratio=True, ltrb=True` return relative corners,
as above; labels start at 1. Without zooming out, the window is known before the image is decoded, and
`decoders.image_slice` decodes only the window.
"""


# %%
def write_coco(folder: Path, count: int) -> Path:
    """Write images and their annotations in COCO format."""
    folder.mkdir(parents=True, exist_ok=True)
    images, objects = [], []
    for number in range(count):
        image, boxes, labels, _ = Shapes()(types.SampleInfo(number, 0, number, 0))
        height, width = image.shape[:2]
        Image.fromarray(image).save(folder / f"{number}.jpg", quality=95)
        images.append({"id": number, "file_name": f"{number}.jpg", "width": width, "height": height})
        for (left, top, right, bottom), label in zip(
            (boxes * [width, height, width, height]).tolist(), labels, strict=True
        ):
            box = [left, top, right - left, bottom - top]
            objects.append(
                {"id": len(objects), "image_id": number, "category_id": int(label[0]), "bbox": box, "iscrowd": 0}
            )
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES) if name]
    annotations = folder / "instances.json"
    annotations.write_text(json.dumps({"images": images, "annotations": objects, "categories": categories}))
    return annotations


ANNOTATIONS = write_coco(OUT / "coco", 32)


@pipeline_def(batch_size=8, num_threads=2, seed=2)
def from_coco():
    encoded, boxes, labels = fn.readers.coco(
        file_root=str(ANNOTATIONS.parent), annotations_file=str(ANNOTATIONS), ratio=True, ltrb=True, random_shuffle=True
    )
    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes, labels, aspect_ratio=[0.5, 2.0], thresholds=[0.1, 0.5], scaling=[0.3, 1.0], num_attempts=50
    )
    images = fn.decoders.image_slice(encoded, anchor, shape, output_type=types.RGB)
    return fn.resize(images, size=[SIZE, SIZE]), boxes, labels


show("05_coco.png", *from_coco().run())

# %% [markdown]
"""| operator for the image | for boxes, points and masks |
|---|---|
| `paste` | `bbox_paste` |
| `slice` with the window of `random_bbox_crop` | the boxes that `random_bbox_crop` returns |
| `resize` | not needed for relative boxes |
| `flip` | `bb_flip` for boxes, `coord_flip` for points |
| `warp_affine(inverse_map=False)` | `coord_transform` with the same matrix for points |
| `rotate` | `bbox_rotate` for boxes |
| any of them | the same operator with `INTERP_NN` for masks |
"""
