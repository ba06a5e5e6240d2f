# %% [markdown]
"""# One changed import

A training script as it stands in many repositories: `ImageFolder`, `transforms.Compose`, `DataLoader`. We change one
import and nothing else. The batches stay the same, byte for byte, and so does every loss that the script prints; only
the time changes.
"""

# %%
import logging
import random
import time
from pathlib import Path

import torch
from PIL import ImageFilter

import dalify.plugin.pytorch
from photos import PHOTOGRAPHS, make_photos
from vision import datasets, transforms  # in your script: from torchvision import datasets, transforms

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "photos", images_per_class=12, longest_side=400)

# %% [markdown]
"""## 1. The script

The loader's class is an argument here, so that we can run the same script twice. In a script of yours it is the name
that an import binds:

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
"""Why they can be the same: the user's own sampler says which samples come when; each thread stands for one of torch's
worker processes and draws the random numbers that this process would have drawn; and pictures are resized by the same
integer arithmetic as Pillow's.

## 2. What runs where

`explain()` tells it without running anything.
"""

# %%
loader = dalify.plugin.pytorch.DataLoader(training, batch_size=16, shuffle=True, num_workers=2)
print(loader.explain())

# %% [markdown]
"""## 3. A transform of your own

dalify does not know what your function does, so it does not guess. What stands before it runs in dalify's kernels;
from there on the rest of the `Compose` runs as the Python that it is, in torch's worker processes, with their random
numbers. The batches are still torch's.
"""


# %%
class Soften:
    """Blur a little, by chance."""

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
"""## 4. When nothing is known

A data set of your own class opens its files in its own way. torch's loader then runs, unchanged, and one line of the
log says why and what would help: here, `lower` turns the `Compose` into a function that does the same to one image,
quicker, wherever you call it.
"""


# %%
class Mine(torch.utils.data.Dataset):
    def __init__(self, inner, transform) -> None:
        self.inner, self.transform = inner, transform

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index):
        image, label = self.inner[index]
        return self.transform(image), label


logging.basicConfig(format="log: %(message)s")
photos = datasets.ImageFolder(str(FOLDER))
preparation = transforms.Compose([transforms.Resize(160), transforms.CenterCrop(128), transforms.ToTensor(), normalize])
ordinary = next(iter(dalify.plugin.pytorch.DataLoader(Mine(photos, preparation), batch_size=8)))[0]
quicker = Mine(photos, dalify.plugin.pytorch.lower(preparation))
assert torch.equal(next(iter(torch.utils.data.DataLoader(quicker, batch_size=8)))[0], ordinary)

# %% [markdown]
"""## 5. How much quicker

Two epochs of each, without workers: what one core prepares. The photographs are small here; with those of a camera the
gain is larger.
"""

# %%
validation = datasets.ImageFolder(str(FOLDER), preparation)


def images_per_s(loader_class, dataset) -> float:
    loader = loader_class(dataset, batch_size=16)
    next(iter(loader))  # the first batch compiles and starts things
    start = time.perf_counter()
    count = sum(len(labels) for _ in range(2) for _, labels in loader)
    return count / (time.perf_counter() - start)


torch.set_num_threads(1)  # as in a worker process: torch's threads would get into each other's way
for name, dataset in (("training", training), ("validation", validation)):
    stock, ours = (
        images_per_s(loader_class, dataset)
        for loader_class in (torch.utils.data.DataLoader, dalify.plugin.pytorch.DataLoader)
    )
    print(f"{name:>10}: torch {stock:4.0f} images/s, dalify {ours:4.0f} images/s, {ours / stock:.1f} times")

# %% [markdown]
"""| you have | you get |
|---|---|
| a known data set and known transforms | everything in dalify's threads, the same batches |
| one transform of your own in the `Compose` | the part before it in dalify's kernels, the rest in torch's workers |
| a `worker_init_fn` | torch's workers, with the quicker kernels in them |
| a data set of your own | torch's loader; `lower(transform)` or `register_dataset` make it quicker |
| a loader that somebody else made | `dalify.plugin.pytorch.accelerate(loader)` |

Next: [10_gaudi_programs_anywhere.py](10_gaudi_programs_anywhere.py).
"""
