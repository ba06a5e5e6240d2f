# %% [markdown]
"""# Training with torchrun: one program, many processes

`torchrun` starts a program several times, once per GPU, sets the rank of each process, and terminates all of them if
one fails. This tutorial trains a small network that way, with `DistributedDataParallel`. One process is killed during
the training. The same command resumes from the last state, and the result is identical to that of an uninterrupted
run.

The data need only `shard="auto"`, `processes=2` and `state_dict()`.

The tutorial runs on CPUs, with two trainers. For a machine with eight GPUs, make the three changes in the table at the
end.
"""

# %%
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from dalify import Pipeline, fn, pipeline_def, types
from dalify.plugin.pytorch import DALIGenericIterator
from photos import PHOTOGRAPHS, make_photos

OUT = Path("out/tutorials/torchrun")
FOLDER = OUT / "photos"
TRAINERS = 2
BATCH_SIZE = 8
EPOCHS = 3
KILLED_AT = (1, 3)  # epoch and batch

# %% [markdown]
"""## 1. The pipeline

* `shard="auto"` gets rank and number of the trainers from `torch.distributed`, or from the environment variables of a
  launcher: torchrun, `mpirun`, or `srun` of SLURM. With JAX it uses `jax.distributed`.
* `pad_last_batch=True`: all trainers get the same number of batches, so that none waits forever for the others.
* `processes=2`: two worker processes per trainer compute the batches, each with its own Python interpreter. The
  function below is Python code, which threads cannot execute in parallel. `parallel=True` declares that its result
  depends only on its input. Omit both without Python functions: dalify's operators are compiled and scale with threads.
"""


# %%
def vignette(image: np.ndarray) -> np.ndarray:
    """Darken the corners."""
    height, width, _ = image.shape
    y, x = np.ogrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    return (image * (1 - 0.3 * (x * x + y * y))[..., None]).astype(np.uint8)


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=12, processes=2)
def photos(folder: str):
    encoded, labels = fn.readers.file(
        file_root=folder, random_shuffle=True, shard="auto", pad_last_batch=True, name="photos"
    )
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=[48, 48], random_area=[0.4, 1.0])
    images = fn.python_function(images, function=vignette, output_layouts="HWC", parallel=True)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, mirror=fn.random.coin_flip(), mean=[127.0] * 3, std=[64.0] * 3
    )
    return images, labels


def loader(pipe: Pipeline) -> DALIGenericIterator:
    return DALIGenericIterator(pipe, ["image", "label"], reader_name="photos", auto_reset=True)


# %% [markdown]
"""## 2. The trainer

This is a typical program for torchrun. Each rank saves the state of its data after every epoch; a state has a few
hundred bytes. The first rank saves the model, which is equal in all ranks.
"""


# %%
def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(128, len(PHOTOGRAPHS)),
    )


def write(path: Path, content: bytes) -> None:
    """Write a file atomically: it contains either the old or the new data."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def train(run: Path, is_killed: bool) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(photos(str(FOLDER)))
    first = 0
    if (run / "model.pt").exists():  # the command was restarted
        saved = torch.load(run / "model.pt")
        first = saved["epoch"] + 1
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        batches.load_state_dict(json.loads((run / f"data-{first - 1}-{rank}.json").read_text()))
    for epoch in range(first, EPOCHS):
        losses = []
        for number, (batch,) in enumerate(batches):
            if is_killed and (epoch, number) == KILLED_AT and rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"].flatten().long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        write(run / f"data-{epoch}-{rank}.json", json.dumps(batches.state_dict()).encode())
        torch.distributed.barrier()
        if rank == 0:
            print(f"  epoch {epoch}: loss {np.mean(losses):.3f} over {len(losses)} batches", flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, run / "model.part")
            (run / "model.part").replace(run / "model.pt")
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()


# %% [markdown]
"""## 3. Two runs

The first run is not interrupted. In the second run a trainer is killed in its second epoch. Its worker processes
terminate, torchrun terminates the other trainer, and the command fails. Then we restart it, as a cluster scheduler
would.

In a shell the command is `torchrun --standalone --nproc-per-node 2 training.py`.
"""


# %%
def torchrun(run: Path, *options: str) -> int:
    """Train in a folder; return the exit status."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={TRAINERS}"]
    command += [__file__, "--folder", str(run), *options]
    print(run.name, *options)
    return subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode


def weights(run: Path) -> dict[str, torch.Tensor]:
    return torch.load(run / "model.pt")["model"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--is-killed", action="store_true")
    arguments = parser.parse_args()
    if arguments.folder is not None:  # in a trainer
        train(arguments.folder, arguments.is_killed)
        return
    make_photos(FOLDER, images_per_class=8, longest_side=100)
    runs = OUT / "undisturbed", OUT / "killed"
    for run in runs:
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
    assert torchrun(runs[0]) == 0
    assert torchrun(runs[1], "--is-killed") != 0
    assert torchrun(runs[1]) == 0
    undisturbed, killed = map(weights, runs)
    assert all(torch.equal(undisturbed[name], killed[name]) for name in undisturbed)
    print("the weights of both runs are equal")


if __name__ == "__main__":
    main()

# %% [markdown]
"""| on eight GPUs | code |
|---|---|
| the launcher | `torchrun --nproc-per-node 8 training.py`; on several machines also `--nnodes`, `--rdzv-endpoint` |
| the group | `torch.distributed.init_process_group("nccl")` |
| the device of a trainer | `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`, and `.cuda()` for batches, model |

With SLURM, `srun --ntasks-per-node 8 python training.py` is sufficient for the data; the process group of torch needs
`MASTER_ADDR`, `MASTER_PORT`, `RANK` and `WORLD_SIZE` as usual. [docs/scaling.md](../docs/scaling.md) describes how many
threads and processes a trainer needs, [docs/processes.md](../docs/processes.md) how failed processes are handled, and
[08_many_processes_stop_and_resume.py](08_many_processes_stop_and_resume.py) how to resume with another number of
trainers.
"""
