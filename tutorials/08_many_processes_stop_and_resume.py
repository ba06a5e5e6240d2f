# %% [markdown]
"""# Training in several processes, stopping and resuming

A long training run uses several processes, reads damaged files, is killed in the middle of an epoch, and is resumed
with a different number of processes. Each of these cases needs one or two lines in dalify. This tutorial shows
all of them with processes of `torch.distributed`. At the end it checks that every photograph of the epoch was read
exactly once.

[docs/epochs.md](../docs/epochs.md) describes epochs in detail.
"""

# %%
import json
import os
import shutil
import signal
import time
import warnings
from collections import Counter
from pathlib import Path

import torch
import torch.distributed
import torch.multiprocessing
from rich.console import Console
from rich.table import Table

from dalify import Pipeline, fn, pipeline_def
from dalify.base.errors import BadSampleWarning
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import make_photos

OUT = Path("out/tutorials/resume")
FOLDER = OUT / "photos"
BATCH_SIZE = 5
COUNT, DAMAGED = 107, 31

# %% [markdown]
"""## 1. The data, with one damaged file

A file list contains 107 photographs. The index of each photograph is its label, so that we can check later which
samples were read. 107 is a prime number: shards have different sizes, and no epoch ends with a full batch. Photograph
31 is truncated, as after an interrupted copy.
"""


# %%
def prepare() -> Path:
    """Create the photographs and the file list."""
    shutil.rmtree(OUT, ignore_errors=True)
    make_photos(FOLDER, images_per_class=14, longest_side=160)
    paths = sorted(FOLDER.glob("*/*.jpg"))[:COUNT]
    paths[DAMAGED].write_bytes(paths[DAMAGED].read_bytes()[:900])
    lines = [f"{path.relative_to(FOLDER)} {number}\n" for number, path in enumerate(paths)]
    (OUT / "list.txt").write_text("".join(lines))
    return OUT / "list.txt"


# %% [markdown]
"""## 2. One pipeline for all processes

* `shard="auto"`: each process reads its shard. The rank comes from `torch.distributed` or from the environment
  variables of a launcher such as `torchrun`. Processes exchange their shards after each epoch.
* `pad_last_batch=True`: all processes get the same number of batches, so no process waits forever in `all_reduce`.
* `on_error="skip"`: a damaged photograph is replaced by another one of the shard, so batches stay full. `"replace"`
  uses a black image instead. Without the option, the pipeline raises an error with the name of the file.
* `max_error_rate`: raise an error if more than 5 % of the samples are damaged, because this suggests another cause.
* `valid_name="valid"`: a mask of the samples that are not padding or replacements.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=1, seed=3, on_error="skip", max_error_rate=0.05)
def photos(is_training: bool):
    encoded, number = fn.readers.file(
        file_root=str(FOLDER),
        file_list=str(OUT / "list.txt"),
        random_shuffle=is_training,
        shard="auto",
        pad_last_batch=True,
        name="photos",
    )
    images = fn.resize(fn.decoders.image(encoded), size=[64, 64])
    return fn.crop_mirror_normalize(images, mean=[127.0] * 3, std=[64.0] * 3), number


def loader(pipe: Pipeline) -> DALIGenericIterator:
    return DALIGenericIterator(
        pipe, ["image", "number"], reader_name="photos", last_batch_policy=LastBatchPolicy.PARTIAL, valid_name="valid"
    )


# %% [markdown]
"""Processes are started as in any program for `torch.distributed`. `gloo` is the backend for CPUs. The processes find
each other through a file.

At the end of an epoch, an iterator reports bad samples in a warning. Here we call `pipe.bad_samples()` instead and
disable the warning.
"""


# %%
def start(work, processes: int, *arguments: object) -> list[int]:
    """Run `work(rank, ...)` in several processes, wait for them and return their exit codes."""
    meeting = OUT / f"group-{time.time_ns()}"
    context = torch.multiprocessing.spawn(in_group, (work, processes, meeting, *arguments), processes, join=False)
    for process in context.processes:
        process.join()
    return [process.exitcode for process in context.processes]


def in_group(rank: int, work, processes: int, meeting: Path, *arguments: object) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", BadSampleWarning)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting.absolute()}", rank=rank, world_size=processes
    )
    work(rank, *arguments)
    torch.distributed.destroy_process_group()


# %% [markdown]
"""## 3. Evaluating every sample once

Two processes share 107 samples: one has 53, the other 54, and both return eleven batches. Averages over batches would
include padding and replacements. With the mask the result is exact: compute the sum and the count of valid samples, and
add both over the processes.

The "metric" is the mean of the normalized pixels. Section 6 compares it with the result of a simple loop in one
process.
"""


# %%
def evaluate(rank: int) -> None:
    batches = loader(photos(is_training=False))
    sums = torch.zeros(2, dtype=torch.float64)  # of the metric; of the samples
    given = 0
    for (batch,) in batches:
        valid = batch["valid"]
        sums += torch.stack([batch["image"][valid].double().mean((1, 2, 3)).sum(), valid.sum()])
        given += 1
    given_by = [torch.zeros(1, dtype=torch.int64) for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_reduce(sums)
    torch.distributed.all_gather(given_by, torch.tensor([given]))
    if rank == 0:
        result = {"mean": (sums[0] / sums[1]).item(), "samples": int(sums[1]), "batches": [int(n) for n in given_by]}
        (OUT / "evaluation.json").write_text(json.dumps(result))


# %% [markdown]
"""## 4. Killing the training processes

Every process saves its own state after the same batch. `Path.replace` is atomic: the file contains either the old or
the new state. A state consists of JSON data and describes what the loop has *received*; it does not include prefetched
batches.

All processes save their state after the fourth batch of the second epoch. They continue for two batches, which are not
in the saved state, and are killed with SIGKILL, so that they cannot clean up.
"""


# %%
def note(run: str, rank: int, epoch: int, batch: dict[str, torch.Tensor]) -> None:
    """Record the samples of a batch in a file, which remains if the process is killed."""
    numbers, valid = batch["number"].flatten(), batch["valid"]
    with (OUT / f"{run}-{rank}.jsonl").open("a") as file:
        line = {"epoch": epoch, "valid": numbers[valid].tolist(), "others": numbers[~valid].tolist()}
        file.write(json.dumps(line) + "\n")


def noted(run: str, rank: int, epoch: int) -> list[list[int]]:
    """Return the valid samples of each batch."""
    lines = [json.loads(line) for line in (OUT / f"{run}-{rank}.jsonl").read_text().splitlines()]
    return [line["valid"] for line in lines if line["epoch"] == epoch]


def train_until_killed(rank: int) -> None:
    evaluate(rank)
    pipe = photos(is_training=True)
    batches = loader(pipe)
    for epoch in range(2):
        for number, (batch,) in enumerate(batches):
            is_forgotten = epoch == 1 and number >= 4
            note("forgotten" if is_forgotten else "before", rank, epoch, batch)
            if epoch == 1 and number == 3:
                (OUT / f"state-{rank}.part").write_text(json.dumps(batches.state_dict()))
                (OUT / f"state-{rank}.part").replace(OUT / f"state-{rank}.json")
            if epoch == 1 and number in (3, 5):
                torch.distributed.barrier()
            if epoch == 1 and number == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        (OUT / f"bad-{rank}.txt").write_text("".join(f"{bad}\n" for bad in pipe.bad_samples(epoch)))


# %% [markdown]
"""## 5. Resuming with two or three processes

With the same number of processes, each loads its own state. With a different number, each loads **the list of all
states**, and the samples that no process has read are divided among the current processes. The first loop returns the
rest of the epoch, the next one a whole epoch.
"""


# %%
def go_on(rank: int, run: str) -> None:
    states = [json.loads(path.read_text()) for path in sorted(OUT.glob("state-*.json"))]
    batches = loader(photos(is_training=True))
    is_as_before = torch.distributed.get_world_size() == len(states)
    batches.load_state_dict(states[rank] if is_as_before else states)
    for epoch in (1, 2):
        for (batch,) in batches:
            note(run, rank, epoch, batch)


# %% [markdown]
"""## 6. Running everything

Spawned processes import this file again, so the code that runs once is guarded by `if __name__ == "__main__"`.
"""


# %%
def show_evaluation() -> None:
    found = json.loads((OUT / "evaluation.json").read_text())
    alone = [
        image.double().mean()
        for (batch,) in loader(photos(is_training=False))
        for image in batch["image"][batch["valid"]]
    ]
    mean = torch.stack(alone).mean().item()
    print(f"evaluation by two processes: {found['mean']:.12f}, {found['samples']} samples, batches {found['batches']}")
    print(f"evaluation by one process:   {mean:.12f}, {len(alone)} samples")
    assert found["samples"] == len(alone) == COUNT - 1
    assert found["batches"] == [11, 11]
    assert abs(found["mean"] - mean) < 1e-9


def show_bad_samples() -> None:
    for rank in range(2):
        for line in (OUT / f"bad-{rank}.txt").read_text().splitlines():
            print(f"bad sample in process {rank}: {line}")


def show_epoch(run: str, processes: int) -> list[str]:
    """Check that every photograph was read exactly once, and return a row of the table."""
    before = [noted("before", rank, epoch=1) for rank in range(2)]
    rest = [noted(run, rank, epoch=1) for rank in range(processes)]
    following = [noted(run, rank, epoch=2) for rank in range(processes)]
    every = Counter(range(COUNT)) - Counter([DAMAGED])
    assert Counter(number for batches in before + rest for batch in batches for number in batch) == every
    assert Counter(number for batches in following for batch in batches for number in batch) == every
    assert len({len(batches) for batches in rest}) == len({len(batches) for batches in following}) == 1
    counts = [sum(len(batch) for batch in batches) for batches in before + rest]
    shown = " + ".join(map(str, counts[:2])), " + ".join(map(str, counts[2:]))
    return [str(processes), *shown, str(sum(counts)), f"{len(rest[0])}", f"{len(following[0])}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", BadSampleWarning)
    prepare()
    print("exit codes of the training (negative signal numbers):", start(train_until_killed, 2))
    show_evaluation()
    show_bad_samples()
    print("size of a state:", (OUT / "state-0.json").stat().st_size, "bytes")

    assert start(go_on, 2, "two") == [0, 0]
    assert start(go_on, 3, "three") == [0, 0, 0]
    table = Table("processes", title=f"the second epoch: {COUNT} photographs, one of them damaged")
    for heading in ("read before", "read after", "each once", "batches of each", "in the next epoch"):
        table.add_column(heading, justify="right")
    table.add_row(*show_epoch("two", 2))
    table.add_row(*show_epoch("three", 3))
    Console(width=110).print(table)

    # With the same number of processes, the batches that were not in the saved state are repeated exactly.
    for rank in range(2):
        assert noted("two", rank, epoch=1)[:2] == noted("forgotten", rank, epoch=1)
    print("two processes repeat the batches after the saved state:", noted("forgotten", 0, epoch=1))

# %% [markdown]
"""| task | code |
|---|---|
| read one shard in each process | `shard="auto"`; or `shard_id=`, `num_shards=` |
| get the same number of batches in all processes | `pad_last_batch=True` |
| compute exact metrics | `valid_name="valid"`, sums and counts |
| tolerate damaged files | `on_error="skip"` or `"replace"`, `max_error_rate=` |
| list damaged files | `pipe.bad_samples()` |
| save in the middle of an epoch | `iterator.state_dict()` in every process, after the same batch |
| resume | `iterator.load_state_dict(state)` |
| resume with more or fewer processes | `iterator.load_state_dict([state, state, ...])` |

[docs/epochs.md](../docs/epochs.md) lists all rules of epochs and the defaults of DALI.
"""
