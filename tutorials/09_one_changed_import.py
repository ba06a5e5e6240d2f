# %% [markdown]
"""# Changing one import

This is a typical training script with `ImageFolder`, `transforms.Compose` and `DataLoader`. We change only one import.
The batches are identical, byte for byte, and so is every loss. Only the time changes.
"""

# %%
import logging
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

import dalify.plugin.pytorch
from photos import PHOTOGRAPHS, make_photos
from vision import datasets, transforms  # in your script: from torchvision import datasets, transforms

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)

# %% [markdown]
"""## 1. The script

Here the class of the loader is an argument, so that we can run the same script twice. In your script, change the
import:

```python
from torch.utils.data import DataLoader          # before
from dalify.plugin.pytorch import DataLoader     # after
```
"""

# %%
normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
training = datasets.ImageFolder(
    str(FOLDER),
    transforms.Compose(
        [
            transforms.RandomResizedCrop(128),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            normalize,
        ]
    ),
)


def train(loader_class) -> list[float]:
    """Return the loss of every step."""
    torch.manual_seed(1)
    random.seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(256, len(PHOTOGRAPHS)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = loader_class(training, batch_size=16, shuffle=True, num_workers=2)
    losses = []
    for _ in range(3):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


before = train(torch.utils.data.DataLoader)
after = train(dalify.plugin.pytorch.DataLoader)
print("the last losses, before:", [round(loss, 6) for loss in before[-3:]])
print("the last losses, after: ", [round(loss, 6) for loss in after[-3:]])
assert before == after, "every loss of every step is the same"

# %% [markdown]
"""The losses are identical for three reasons. The sampler of the script determines the order of the samples. Each
thread corresponds to one worker process of torch and draws the same random numbers. Images are resized with the same
integer arithmetic as in Pillow.

## 2. Which parts dalify executes

`explain()` describes the execution without running it.
"""

# %%
loader = dalify.plugin.pytorch.DataLoader(training, batch_size=16, shuffle=True, num_workers=2)
print(loader.explain())

# %% [markdown]
"""## 3. A custom transform

dalify cannot replace a transform that it does not know. The transforms before it are executed by kernels of dalify. The
custom transform and all transforms after it run as Python code in torch's worker processes, with their random numbers.
The batches are identical to those of torch.
"""


# %%
class Soften:
    """Blur some images slightly."""

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 1.5)))


softened = datasets.ImageFolder(
    str(FOLDER),
    transforms.Compose([transforms.Resize(160), transforms.CenterCrop(128), Soften(), transforms.ToTensor()]),
)


def first_images(loader_class) -> torch.Tensor:
    torch.manual_seed(2)
    random.seed(2)
    return next(iter(loader_class(softened, batch_size=8)))[0]


assert torch.equal(first_images(torch.utils.data.DataLoader), first_images(dalify.plugin.pytorch.DataLoader))
print(dalify.plugin.pytorch.DataLoader(softened, batch_size=8).explain())

# %% [markdown]
"""## 4. A custom dataset

dalify also runs your own classes if `__getitem__` opens an image with Pillow, `torchvision.io` or OpenCV, or takes it
from a supported dataset, and passes it to `self.transform`, alone or with a mask. Paths, labels and other values may be
computed by any Python code.
"""


# %%
class Mine(torch.utils.data.Dataset):
    def __init__(self, paths, classes, transform=None) -> None:
        self.paths, self.classes, self.transform = paths, classes, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        image = Image.open(path).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return {"image": image, "label": self.classes[path.parent.name], "name": path.name}


photos = datasets.ImageFolder(str(FOLDER))
paths = sorted(FOLDER.glob("*/*.jpg"))
preparation = transforms.Compose([transforms.Resize(160), transforms.CenterCrop(128), transforms.ToTensor(), normalize])
mine = Mine(paths, photos.class_to_idx, preparation)
print(dalify.plugin.pytorch.DataLoader(mine, batch_size=8).explain())
ordinary = next(iter(dalify.plugin.pytorch.DataLoader(mine, batch_size=8)))
expected = next(iter(torch.utils.data.DataLoader(mine, batch_size=8)))
assert torch.equal(ordinary["image"], expected["image"])
assert ordinary["name"] == expected["name"]

# %% [markdown]
"""If the method does anything else with the image, torch's loader runs, and the log states the reason and
suggests a change. Here the suggestion is `lower`: it converts the `Compose` to a faster function of one image with the
same result, which you can call anywhere.
"""


# %%
class Turned(Mine):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB").rotate(90)), index


logging.basicConfig(format="log: %(message)s")
turned = next(iter(dalify.plugin.pytorch.DataLoader(Turned(paths, {}, preparation), batch_size=8)))[0]
quicker = Turned(paths, {}, dalify.plugin.pytorch.lower(preparation))
assert torch.equal(next(iter(torch.utils.data.DataLoader(quicker, batch_size=8)))[0], turned)

# %% [markdown]
"""## 5. A dataset in memory

If `__getitem__` only returns rows of tensors, arrays and lists, converted or scaled, a whole batch is selected at once.
This includes torch's `TensorDataset`, `StackDataset`, `ConcatDataset` and `Subset`.
"""


# %%
class Digits(torch.utils.data.Dataset):
    def __init__(self, images, labels, transform=None) -> None:
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float() / 255
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


digits = Digits(np.random.default_rng(1).integers(0, 256, (5000, 28, 28), np.uint8), [n % 10 for n in range(5000)])
loader = dalify.plugin.pytorch.DataLoader(digits, batch_size=64)
print(loader.explain())
for ours, of_torch in zip(loader, torch.utils.data.DataLoader(digits, batch_size=64), strict=True):
    assert all(torch.equal(one, other) for one, other in zip(ours, of_torch, strict=True))

# %% [markdown]
"""## 6. Comparing the speed

We measure two epochs of each loader without workers, on one core. The photographs are small; the gain is larger for
photographs in camera resolution.
"""

# %%
validation = datasets.ImageFolder(str(FOLDER), preparation)


def images_per_s(loader_class, dataset) -> float:
    loader = loader_class(dataset, batch_size=16)
    next(iter(loader))  # the first batch includes compilation and startup
    start = time.perf_counter()
    count = sum(len(labels) for _ in range(2) for _, labels in loader)
    return count / (time.perf_counter() - start)


torch.set_num_threads(1)  # as in a worker process, to avoid contention between torch's threads
for name, dataset in (("training", training), ("validation", validation), ("in memory", digits)):
    stock, ours = (
        images_per_s(loader_class, dataset)
        for loader_class in (torch.utils.data.DataLoader, dalify.plugin.pytorch.DataLoader)
    )
    print(f"{name:>10}: torch {stock:4.0f} images/s, dalify {ours:4.0f} images/s, {ours / stock:.1f} times")

# %% [markdown]
"""| your script | execution |
|---|---|
| a known dataset and known transforms | dalify's threads execute everything; the same batches |
| a custom transform in the `Compose` | transforms before it in dalify's kernels, the rest in torch's workers |
| a `worker_init_fn` | torch's workers with the faster kernels |
| a dataset of Hugging Face with `set_transform` | like known datasets; the function may contain other code |
| a dataset whose `__getitem__` only returns rows of arrays | whole batches selected by dalify |
| another custom dataset | torch's loader; `lower(transform)` or `register_dataset` make it faster |
| a loader that other code creates | `dalify.plugin.pytorch.accelerate(loader)` |

Next: [10_gaudi_programs_anywhere.py](10_gaudi_programs_anywhere.py).
"""
