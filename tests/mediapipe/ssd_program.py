"""COCO and SSD's transforms as in reference programs: the part that users write themselves.

Written for the tests, by the published rules: the attributes, the order of random draws, which edges are
cut, and which anchor gets which box.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from dalify.mediapipe.nodes.ssd import default_boxes

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def overlaps(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Intersection over union of each box with each box: [N, M]."""
    low = torch.max(first[:, None, :2], second[None, :, :2])
    high = torch.min(first[:, None, 2:], second[None, :, 2:])
    sides = (high - low).clamp(min=0)
    common = sides[..., 0] * sides[..., 1]
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (first, second)]
    return common / (areas[0][:, None] + areas[1][None] - common)


class COCODetection(torch.utils.data.Dataset):
    def __init__(self, img_folder: str, annotate_file: str, transform: Any = None) -> None:
        self.img_folder, self.annotate_file, self.transform = img_folder, annotate_file, transform
        self.data = json.loads(Path(annotate_file).read_text())
        self.label_map = {category["id"]: number for number, category in enumerate(self.data["categories"], 1)}
        found: dict[int, tuple[str, tuple[int, int], list]] = {
            image["id"]: (image["file_name"], (image["height"], image["width"]), []) for image in self.data["images"]
        }
        for item in self.data["annotations"]:
            found[item["image_id"]][2].append((item["bbox"], self.label_map[item["category_id"]]))
        self.images = {key: image for key, image in found.items() if image[2]}
        self.img_keys = list(self.images)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        key = self.img_keys[index]
        name, (height, width), objects = self.images[key]
        with Image.open(Path(self.img_folder, name)) as picture:
            image = picture.convert("RGB")
        boxes = torch.tensor(
            [(x / width, y / height, (x + w) / width, (y + h) / height) for (x, y, w, h), _ in objects]
        )
        labels = torch.tensor([label for _, label in objects])
        image, (height, width), boxes, labels = self.transform(image, (height, width), boxes, labels)
        return image, key, (height, width), boxes, labels


class SSDCropping:
    def __init__(self, num_cropping_iterations: int = 1) -> None:
        self.sample_options = (None, (0.1, None), (0.3, None), (0.5, None), (0.7, None), (0.9, None), (None, None))
        self.num_cropping_iterations = num_cropping_iterations

    def __call__(self, image: Any, size: tuple[int, int], boxes: Any, labels: Any) -> Any:
        while True:
            option = random.choice(self.sample_options)
            if option is None:
                return image, size, boxes, labels
            height, width = size
            least = float("-inf") if option[0] is None else option[0]
            most = float("inf") if option[1] is None else option[1]
            for _ in range(self.num_cropping_iterations):
                w, h = random.uniform(0.3, 1.0), random.uniform(0.3, 1.0)
                if w / h < 0.5 or w / h > 2:
                    continue
                left, top = random.uniform(0, 1.0 - w), random.uniform(0, 1.0 - h)
                right, bottom = left + w, top + h
                found = overlaps(boxes, torch.tensor([[left, top, right, bottom]]))
                if not ((found > least) & (found < most)).all():
                    continue
                x, y = 0.5 * (boxes[:, 0] + boxes[:, 2]), 0.5 * (boxes[:, 1] + boxes[:, 3])
                kept = (x > left) & (x < right) & (y > top) & (y < bottom)
                if not kept.any():
                    continue
                boxes[boxes[:, 0] < left, 0] = left
                boxes[boxes[:, 1] < top, 1] = top
                boxes[boxes[:, 2] > right, 2] = right
                boxes[boxes[:, 3] > bottom, 3] = bottom
                boxes, labels = boxes[kept, :], labels[kept]
                window = int(left * width), int(top * height), int(right * width), int(bottom * height)
                image = image.crop(window)
                for column, (origin, extent) in enumerate([(left, w), (top, h), (left, w), (top, h)]):
                    boxes[:, column] = (boxes[:, column] - origin) / extent
                return image, (window[3] - window[1], window[2] - window[0]), boxes, labels


class RandomHorizontalFlip:
    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any, boxes: Any) -> Any:
        if random.random() < self.p:
            boxes[:, 0], boxes[:, 2] = 1.0 - boxes[:, 2], 1.0 - boxes[:, 0]
            return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), boxes
        return image, boxes


class Encoder:
    def __init__(self) -> None:
        self.dboxes = torch.from_numpy(default_boxes().copy())

    def encode(self, boxes: torch.Tensor, labels: torch.Tensor, criteria: float = 0.5) -> Any:
        found = overlaps(boxes, self.dboxes)
        best, box_of = found.max(dim=0)
        own_anchors = found.max(dim=1)[1]
        best[own_anchors] = 2.0
        for box, anchor in enumerate(own_anchors):
            box_of[anchor] = box
        matched = best > criteria
        out_labels = torch.zeros(len(self.dboxes), dtype=torch.long)
        out_labels[matched] = labels[box_of[matched]]
        corners = self.dboxes.clone()
        corners[matched] = boxes[box_of[matched]]
        center, extent = 0.5 * (corners[:, :2] + corners[:, 2:]), corners[:, 2:] - corners[:, :2]
        return torch.cat([center, extent], dim=1), out_labels


class SSDTransformer:
    def __init__(self, transforms: Any, *, val: bool = False, size: tuple[int, int] = (300, 300)) -> None:
        self.size, self.val = size, val
        self.encoder = Encoder()
        self.crop = SSDCropping()
        self.hflip = RandomHorizontalFlip()
        jitter = transforms.ColorJitter(brightness=0.125, contrast=0.5, saturation=0.5, hue=0.05)
        self.img_trans = transforms.Compose([transforms.Resize(size), jitter, transforms.ToTensor()])
        self.normalize = transforms.Normalize(mean=MEAN, std=STD)
        self.trans_val = transforms.Compose([transforms.Resize(size), transforms.ToTensor(), self.normalize])

    def __call__(
        self, image: Any, size: tuple[int, int], boxes: Any = None, labels: Any = None, max_num: int = 200
    ) -> Any:
        if self.val:
            all_boxes, all_labels = torch.zeros(max_num, 4), torch.zeros(max_num, dtype=torch.long)
            all_boxes[: len(boxes)], all_labels[: len(labels)] = boxes, labels
            return self.trans_val(image), size, all_boxes, all_labels
        image, size, boxes, labels = self.crop(image, size, boxes, labels)
        image, boxes = self.hflip(image, boxes)
        image = self.normalize(self.img_trans(image).contiguous())
        return image, size, *self.encoder.encode(boxes, labels)
