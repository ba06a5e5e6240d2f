# %% [markdown]
"""# Running Gaudi programs on any machine

A MediaPipe program for Gaudi is a class: the constructor creates operators, and `definegraph` connects them. dalify
runs such programs unchanged on any machine. This tutorial runs four of them: a pipe for ResNet, a pipe for SSD with
boxes and anchors, a pipe with a custom reader class, and `HabanaDataLoader`.

This file imports the modules from `dalify`. To run a program without changing its imports, call
`from dalify.mediapipe import shim; shim.install()` first. It makes `habana_frameworks.mediapipe` and
`habana_dataloader` import the modules of dalify.
"""

# %%
import json
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from contact_sheets import contact_sheet
from dalify.mediapipe import fn
from dalify.mediapipe.habana_dataloader import HabanaDataLoader
from dalify.mediapipe.media_types import dtype, ftype, imgtype, randomCropType, readerOutType
from dalify.mediapipe.mediapipe import MediaPipe
from dalify.mediapipe.operators.cpu_nodes.cpu_nodes import media_function
from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl
from dalify.mediapipe.plugins.iterator_pytorch import (
    HPUGenericPytorchIterator,
    HPUResnetPytorchIterator,
    HPUSsdPytorchIterator,
)
from photos import make_photos
from vision import datasets, transforms  # in your script: from torchvision import datasets, transforms

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)
CLASSES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
BATCH_SIZE = 8
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

logging.basicConfig(format="log of %(name)s: %(message)s")
logging.getLogger("dalify.mediapipe").setLevel(logging.INFO)

# %% [markdown]
"""## 1. A pipe for ResNet

The pipe reads class folders, crops a random window of each image, mirrors half of them and normalizes. It shows two
conventions of MediaPipe:

* Sizes and shapes start with the dimension that changes fastest: `resize` is width and height, and `[1, 1, 3]` is the
  shape of three planar channels. Arrays have the axis order of NumPy.
* A Python class decides once per batch which images are mirrored.

The pipe specifies the device `"mixed"`: decode to the accelerator. Without an accelerator, everything runs on the CPU,
and the log says so.
"""


# %%
class Coins(media_function):
    def __init__(self, params):
        self.shape = params["shape"][::-1]
        self.random = np.random.default_rng(params["seed"])

    def __call__(self):
        return self.random.integers(0, 2, self.shape).astype(np.uint8)


class ResnetPipe(MediaPipe):
    def __init__(self, folder, batch_size, device="mixed"):
        super().__init__(device=device, batch_size=batch_size, prefetch_depth=3, pipe_name="resnet")
        self.input = fn.ReadImageDatasetFromDir(shuffle=True, dir=str(folder), format="JPEG", seed=5)
        self.decode = fn.ImageDecoder(
            device="hpu",
            output_format=imgtype.RGB_P,
            random_crop_type=randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP,
            resize=[128, 128],
            resampling_mode=ftype.BI_LINEAR,
            scale_min=0.08,
            scale_max=1.0,
            seed=7,
        )
        self.coins = fn.MediaFunc(func=Coins, shape=[batch_size], dtype=dtype.UINT8, seed=3)
        self.flip = fn.RandomFlip(horizontal=1, device="hpu")
        mean, factor = 255 * np.float32(MEAN), 1 / (255 * np.float32(STD))
        self.mean = fn.MediaConst(data=mean, shape=[1, 1, 3], dtype=dtype.FLOAT32)
        self.factor = fn.MediaConst(data=factor, shape=[1, 1, 3], dtype=dtype.FLOAT32)
        self.normalize = fn.CropMirrorNorm(crop_w=128, crop_h=128, dtype=dtype.FLOAT32, device="hpu")

    def definegraph(self):
        files, labels = self.input()
        images = self.flip(self.decode(files), self.coins())
        return self.normalize(images, self.mean(), self.factor()), labels


def shown(images):
    """Convert normalized planes back to images."""
    planes = images.cpu() * torch.tensor(STD).reshape(3, 1, 1) + torch.tensor(MEAN).reshape(3, 1, 1)
    return (planes * 255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()


loader = HPUResnetPytorchIterator(mediapipe=ResnetPipe(FOLDER, BATCH_SIZE))
batches = list(loader)
print(f"{len(loader)} batches; images {tuple(batches[0][0].shape)} {batches[0][0].dtype}, labels {batches[0][1].dtype}")
counts = Counter(torch.cat([labels for _, labels in batches]).tolist())
print("samples per class:", sorted(set(counts.values())))
resnet_images = shown(batches[0][0])
resnet_captions = [CLASSES[label] for label in batches[0][1]]

# %% [markdown]
"""## 2. A pipe for SSD, with boxes

The data are discs and squares on photographs, with annotations in COCO format.
"""


# %%
def make_shapes(folder: Path, count: int) -> Path:
    """Write photographs with discs (1) and squares (2), and return the annotation file."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(4)
    images, annotations = [], []
    for number, path in enumerate(sorted(FOLDER.glob("*/*.jpg"), key=lambda path: path.name)[:count]):
        image = Image.open(path).convert("RGB")
        draw = ImageDraw.Draw(image)
        for _ in range(random.integers(1, 4)):
            side = random.uniform(0.15, 0.4) * min(image.size)
            left, top = random.uniform(0, image.width - side), random.uniform(0, image.height - side)
            category = int(random.integers(1, 3))
            if category == 1:
                draw.ellipse((left, top, left + side, top + side), fill=(255, 70, 70))
            else:
                draw.rectangle((left, top, left + side, top + side), fill=(80, 220, 255))
            annotations.append({"image_id": number, "category_id": category, "bbox": [left, top, side, side]})
        image.save(folder / f"{number:03}.jpg", quality=95)
        images.append({"id": number, "file_name": f"{number:03}.jpg", "height": image.height, "width": image.width})
    categories = [{"id": 1, "name": "disc"}, {"id": 2, "name": "square"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder / "annotations.json"


SHAPES = OUT / "shapes_in_coco"
ANNOTATIONS = make_shapes(SHAPES, 24)

# %% [markdown]
"""`SSDCropWindowGen` chooses a window with a sufficient overlap with the boxes and passes it to the decoder, which
decodes only the window. The same random value mirrors image and boxes. `SSDEncode` matches the boxes to the 8732
anchors of SSD300: matched anchors get the label of the box, all others get 0. A shape whose center is outside the
window has no box, even if a part of it is visible.
"""


# %%
class SsdPipe(MediaPipe):
    def __init__(self, folder, annotations, batch_size):
        super().__init__(device="cpu", batch_size=batch_size, prefetch_depth=3, num_threads=2, pipe_name="ssd")
        self.input = fn.CocoReader(root=str(folder), annfile=str(annotations), seed=2, drop_remainder=True)
        self.half = fn.Constant(constant=0.5, dtype=dtype.FLOAT32)
        self.coin = fn.CoinFlip(seed=100)
        self.window = fn.SSDCropWindowGen(seed=8)
        self.flip_boxes = fn.SSDBBoxFlip()
        self.encode = fn.SSDEncode()
        self.decode = fn.ImageDecoder(output_format=imgtype.RGB_I, resize=[300, 300])
        self.flip = fn.RandomFlip(horizontal=1)

    def definegraph(self):
        files, ids, sizes, boxes, labels, lengths, _ = self.input()
        boxes, labels, lengths, windows = self.window(sizes, boxes, labels, lengths)
        coins = self.coin(self.half())
        images = self.flip(self.decode(files, windows), coins)
        boxes, labels = self.encode(self.flip_boxes(coins, boxes, lengths), labels, lengths)
        return images, ids, sizes, boxes, labels


ssd_images, ssd_captions = [], []
images, ids, _, boxes, labels = next(iter(HPUSsdPytorchIterator(mediapipe=SsdPipe(SHAPES, ANNOTATIONS, BATCH_SIZE))))
print(f"images {tuple(images.shape)}, boxes {tuple(boxes.shape)}, labels {tuple(labels.shape)}")
for image, number, its_boxes, its_labels in zip(images, ids, boxes, labels, strict=True):
    annotated = Image.fromarray(image.numpy())
    matched = its_boxes[its_labels > 0]
    for x, y, width, height in (matched.unique(dim=0) * 300).tolist():
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        ImageDraw.Draw(annotated).rectangle(corners, outline=(255, 220, 60), width=5)
    ssd_images.append(np.asarray(annotated))
    ssd_captions.append(f"image {number}: {len(matched)} anchors")

# %% [markdown]
"""## 3. A custom reader

For other data, a custom class returns the batches: paths, or, as here, the contents of files; and the arrays for them.
It needs `__iter__`, which starts an epoch, `__next__` and `__len__`. This one holds all files in memory and draws all
classes with equal frequency, independent of their sizes.
"""


# %%
class EachClassEquallyOften(media_ext_reader_op_impl):
    def __init__(self, params, fw_params):
        paths = params["priv_params"]["paths"]
        self.names = sorted(paths)
        self.contents = {
            name: [np.frombuffer(path.read_bytes(), np.uint8) for path in files] for name, files in paths.items()
        }
        self.batch_size = fw_params.batch_size
        self.random = np.random.default_rng(params["seed"])

    def __iter__(self):
        self.left = len(self)
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        labels = self.random.integers(len(self.names), size=self.batch_size).astype(np.int32)
        files = [self.contents[self.names[label]] for label in labels]
        return [each[self.random.integers(len(each))] for each in files], labels

    def __len__(self):
        return 60

    def get_media_output_type(self):
        return readerOutType.BUFFER_LIST


class BalancedPipe(MediaPipe):
    def __init__(self, paths, batch_size):
        super().__init__(device="cpu", batch_size=batch_size, prefetch_depth=3, pipe_name="balanced")
        self.paths = paths

    def definegraph(self):  # operators may also be created here
        reader = fn.MediaExtReaderOp(
            impl=EachClassEquallyOften, num_outputs=2, seed=1, priv_params={"paths": self.paths}
        )
        files, labels = reader()
        return fn.ImageDecoder(output_format=imgtype.RGB_P, resize=[64, 64])(files), labels


uneven = {"cat": sorted((FOLDER / "cat").glob("*.jpg")), "rocket": sorted((FOLDER / "rocket").glob("*.jpg"))[:1]}
drawn = torch.cat([labels for _, labels in HPUGenericPytorchIterator(mediapipe=BalancedPipe(uneven, BATCH_SIZE))])
print("samples drawn from 12 cats and 1 rocket:", Counter(sorted(uneven)[label] for label in drawn))
assert abs((drawn == 0).float().mean() - 0.5) < 0.1

# %% [markdown]
"""## 4. HabanaDataLoader

`HabanaDataLoader` has the signature of torch's `DataLoader` and returns identical batches in the order of your sampler.
It supports any number of workers, any parameters of the transforms, and PNG as well as JPEG. It also accepts COCO with
the transforms of the SSD reference programs.
"""

# %%
training = datasets.ImageFolder(
    str(FOLDER),
    transforms.Compose(
        [
            transforms.RandomResizedCrop(96),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    ),
)


def first_batch(kind):
    torch.manual_seed(1)
    sampler = torch.utils.data.RandomSampler(training)
    return next(iter(kind(training, batch_size=BATCH_SIZE, sampler=sampler, num_workers=2, drop_last=True)))


found, expected = first_batch(HabanaDataLoader), first_batch(torch.utils.data.DataLoader)
same = [torch.equal(*pair) for pair in zip(found, expected, strict=True)]
print("images and labels are equal to those of torch:", same)
assert all(same)

# %% [markdown]
"""For datasets and transforms that dalify does not support, torch's loader is used, and the log contains the same
message as on Gaudi. With the environment variable `DATALOADER_FALLBACK_EN=false`, an error is raised instead.
"""


# %%
class Squares(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index):
        return index * index


loader = HabanaDataLoader(Squares(), batch_size=5)
print("accelerated:", loader.accelerated, "- batches:", len(list(loader)))

# %%
contact_sheet(OUT / "10_gaudi_programs.png", [*resnet_images, *ssd_images], [*resnet_captions, *ssd_captions])

# %% [markdown]
"""| on Gaudi | with dalify |
|---|---|
| `from habana_frameworks.mediapipe …` | `from dalify.mediapipe …`, or `shim.install()` before the program |
| `import habana_dataloader` | `from dalify.mediapipe import habana_dataloader` |
| `device="mixed"`, `"hpu"`, `"gaudi2"` … | the accelerator that torch finds, else the CPU |
| `pipe.run()`, `as_cpu().as_nparray()` | the same; also `.torch()`, `np.asarray` and DLPack |
| `HPU…PytorchIterator` | the same; labels are int64, and tensors own their memory |

[docs/mediapipe.md](../docs/mediapipe.md) lists all operators and differences. Next:
[11_looking_inside.py](11_looking_inside.py).
"""
