# %% [markdown]
"""# Training with Flax: batches as JAX arrays

A small Flax network learns to classify crops of eight photographs. A dalify pipeline reads, decodes and augments. Its
batches are JAX arrays; on a CPU they share the memory of the pipeline, except for small ones, which may be copied. The
last section resumes the iteration at the next batch.

The tutorial needs `pip install 'dalify[jax]' flax optax` and runs on CPUs and accelerators.
"""

# %%
import json
from pathlib import Path

import jax
import numpy as np
import optax
from flax import linen as nn

from dalify import fn, types
from dalify.plugin.jax import data_iterator
from photos import PHOTOGRAPHS, make_photos

FOLDER = make_photos(Path("out/tutorials/flax"), images_per_class=24, longest_side=96)
BATCH_SIZE = 32
EPOCHS = 6

# %% [markdown]
"""## 1. The data

`data_iterator` combines `pipeline_def` and an iterator: the function describes a batch, and a call returns an iterator
of dictionaries. With `reader_name`, the reader determines the length of an epoch. `pad_last_batch=True` fills the last
batch, because a compiled JAX step needs batches of equal size.
"""


# %%
@data_iterator(output_map=["image", "label"], reader_name="photos", auto_reset=True)
def photos(folder: str, is_training: bool):
    encoded, labels = fn.readers.file(file_root=folder, random_shuffle=is_training, pad_last_batch=True, name="photos")
    images = fn.decoders.image(encoded)
    if is_training:
        images = fn.random_resized_crop(images, size=[40, 40], random_area=[0.3, 1.0])
        mirror = fn.random.coin_flip()
    else:
        images = fn.resize(images, size=[40, 40])
        mirror = 0
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, mirror=mirror, mean=[127.0] * 3, std=[64.0] * 3, output_layout="HWC"
    )
    return images, fn.squeeze(labels, axes=[0])


training = photos(str(FOLDER), True, batch_size=BATCH_SIZE, num_threads=2, seed=3)
batch = next(training)
print({name: (array.shape, str(array.dtype)) for name, array in batch.items()})
training.reset()

# %% [markdown]
"""## 2. The network and a step

This is a typical Flax program: a compiled step maps parameters to new parameters. Flax convolutions expect the layout
`HWC`, so the pipeline returns images in this layout.
"""


# %%
class Network(nn.Module):
    @nn.compact
    def __call__(self, images):
        for features in (16, 32):
            images = nn.relu(nn.Conv(features, (3, 3), strides=2)(images))
        return nn.Dense(len(PHOTOGRAPHS))(images.reshape(len(images), -1))


network = Network()
optimizer = optax.adam(2e-3)
parameters = network.init(jax.random.key(0), batch["image"])
state = optimizer.init(parameters)


@jax.jit
def step(parameters, state, batch):
    def loss_of(parameters):
        logits = network.apply(parameters, batch["image"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, gradient = jax.value_and_grad(loss_of)(parameters)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(parameters, updates), state, loss


# %% [markdown]
"""## 3. The training

`for batch in training` is one epoch; `auto_reset` starts the next one. While JAX computes a step, dalify's threads
prepare the next batches.
"""

# %%
losses = []
for epoch in range(EPOCHS):
    found = []
    for batch in training:
        parameters, state, loss = step(parameters, state, batch)
        found.append(float(loss))
    losses.append(np.mean(found))
    print(f"epoch {epoch}: loss {losses[-1]:.3f} over {len(found)} batches")
assert losses[-1] < 0.7 * losses[0]

# %% [markdown]
"""## 4. Evaluation

The same function returns an iterator without augmentation. The last batch contains padding; `valid_name` would return
a mask of it, but here the number of files is sufficient.
"""

# %%
files = sum(1 for _ in FOLDER.glob("*/*.jpg"))
right = 0
seen = 0
for batch in photos(str(FOLDER), False, batch_size=BATCH_SIZE, num_threads=2):
    guesses = np.argmax(network.apply(parameters, batch["image"]), axis=1)
    count = min(BATCH_SIZE, files - seen)
    right += int((guesses == np.asarray(batch["label"]))[:count].sum())
    seen += count
print(f"{right} of {seen} correct")
assert right > 0.6 * seen

# %% [markdown]
"""## 5. Stop and resume

`state_dict()` returns the position in the data as plain numbers. A new iterator, for instance in another process,
continues with the next batch.
"""

# %%
iterator = photos(str(FOLDER), True, batch_size=BATCH_SIZE, num_threads=2, seed=3)
next(iterator)
saved = json.dumps(iterator.state_dict())
expected = next(iterator)

continued = photos(str(FOLDER), True, batch_size=BATCH_SIZE, num_threads=2, seed=3)
continued.load_state_dict(json.loads(saved))
found = next(continued)
assert (found["image"] == expected["image"]).all()
print(f"the state takes {len(saved)} characters, and the next batch is the same")
