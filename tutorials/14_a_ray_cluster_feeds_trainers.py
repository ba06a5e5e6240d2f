# %% [markdown]
"""# A Ray cluster feeds trainers

Eight GPUs can consume more images than the CPUs of their machine can decode. Then other machines decode, and Ray
transfers their batches to the trainers: pass the pipeline to `RayPipeline` and leave the rest of the program unchanged.
The first half feeds one trainer from a pool of CPU nodes, one of which is killed during the run. The second half trains
with Ray Train, two trainers and one pool.

The tutorial needs `pip install 'dalify[ray]' 'ray[train]'`. It simulates a cluster of small nodes on this machine. On a
real cluster, section 1 is only `ray.init("auto")`.
"""

# %%
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from dalify import fn, pipeline_def, types
from dalify.plugin.pytorch import DALIGenericIterator
from dalify.plugin.ray import RayPipeline, RayPool
from photos import PHOTOGRAPHS, make_photos

if importlib.util.find_spec("ray") is None:
    print("Ray is not installed, so this tutorial is skipped: pip install 'dalify[ray]' 'ray[train]'")
    sys.exit()

OUT = Path("out/tutorials/ray").resolve()
FOLDER = OUT / "photos"
make_photos(FOLDER, images_per_class=8, longest_side=100)

# %% [markdown]
"""## 1. A cluster

The cluster has two nodes with one CPU each, and a node for the trainers, which does not decode. By default, Ray workers
run with low priority (`nice 15`), so on nodes that also run other programs, start Ray with `RAY_worker_niceness=0`.
"""

# %%
os.environ.update(RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")
import ray  # noqa: E402
import ray.train.torch  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

STORE_BYTES = 80_000_000
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 1, "object_store_memory": STORE_BYTES, "resources": {"trainer": 2}},
)
ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, resources={"decoder": 1}) for _ in range(2)]

# %% [markdown]
"""## 2. A pool of CPU nodes feeds a trainer

`resources=` starts workers only on nodes that have this resource. One node is killed during the run: the other nodes
compute its batches, and the losses are identical to those of a run in one process.
"""


# %%
@pipeline_def(batch_size=8, num_threads=1, seed=12)
def photos(folder: str):
    encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, shard="auto", name="photos")
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=[48, 48], random_area=[0.4, 1.0])
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, mirror=fn.random.coin_flip(), mean=[127.0] * 3, std=[64.0] * 3
    )
    return images, labels


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(64, len(PHOTOGRAPHS)),
    )  # fmt: skip


def losses_of(pipe, batches: int, lost_node=None) -> list[float]:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for number in range(batches):
        images, labels = (torch.from_dlpack(output.as_tensor()) for output in pipe.run())
        loss = torch.nn.functional.cross_entropy(model(images), labels.flatten().long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if lost_node is not None and number == batches // 2:
            cluster.remove_node(lost_node, allow_graceful=False)
    pipe.close()
    return losses


torch.set_num_threads(1)
alone = losses_of(photos(str(FOLDER)), 8)
pipe = RayPipeline(photos(str(FOLDER)), workers=2, resources={"decoder": 1})
fed = losses_of(pipe, 8, nodes[0])
print("losses of one process:       ", np.round(alone, 3))
print("two nodes, one of them lost:", np.round(fed, 3))
assert alone == fed

# %% [markdown]
"""## 3. Ray Train

The trainers share one pool, which is passed to them. `shard="auto"` gets rank and number of the trainers from Ray
Train. A checkpoint contains the model and the data state of each trainer, which has a few hundred bytes.
"""


# %%
def train(config: dict) -> None:
    pipe = RayPipeline(photos(config["folder"]), pool=config["pool"])
    batches = DALIGenericIterator(pipe, ["image", "label"], reader_name="photos", auto_reset=True)
    model = ray.train.torch.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rank = ray.train.get_context().get_world_rank()
    first = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, "model.pt"))
            batches.load_state_dict(json.loads(Path(folder, f"data-{rank}.json").read_text()))
        first = saved["epoch"] + 1
        model.load_state_dict(saved["model"])
    for epoch in range(first, config["epochs"]):
        losses = []
        for (batch,) in batches:
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"].flatten().long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, f"data-{rank}.json").write_text(json.dumps(batches.state_dict()))
            if rank == 0:
                torch.save({"model": model.state_dict(), "epoch": epoch}, Path(folder, "model.pt"))
            ray.train.report(
                {"epoch": epoch, "loss": float(np.mean(losses))},
                checkpoint=ray.train.Checkpoint.from_directory(folder),
            )
    pipe.close()


def fit(name: str, epochs: int, checkpoint=None):
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"folder": str(FOLDER), "pool": pool, "epochs": epochs},
        scaling_config=ray.train.ScalingConfig(
            num_workers=2, resources_per_worker={"CPU": 0.5, "trainer": 1}, trainer_resources={"CPU": 0}
        ),
        run_config=ray.train.RunConfig(name=name, storage_path=str(OUT / "runs")),
        resume_from_checkpoint=checkpoint,
    )
    return trainer.fit()


with RayPool(workers=1, resources={"decoder": 1}) as pool:
    stopped = fit("stopped", 1)
    resumed = fit("resumed", 2, stopped.checkpoint)
losses = [run.metrics["loss"] for run in (stopped, resumed)]
print("losses of the first epoch, and of the second epoch in another run:", np.round(losses, 3))
assert (stopped.metrics["epoch"], resumed.metrics["epoch"]) == (0, 1)

# %%
ray.shutdown()
cluster.shutdown()

# %% [markdown]
"""[docs/scaling.md](../docs/scaling.md) describes how many CPU nodes a trainer needs. [docs/ray.md](../docs/ray.md)
describes how failed or slow nodes and workers and different versions are handled, and the use of Ray Data.
"""
