# %% [markdown]
"""# Data formats and when to use them

The same photographs can be stored in a folder, in an archive, in a database, or on another machine. The network gets
the same data, but the speed of the loader differs. We write a small dataset in every format that dalify reads and
measure the time of reading, the time of reading and decoding, and the time of reading from remote storage.

You can run each cell. Images are written to `out/tutorials/`.
"""

# %%
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet
import torch
from containers import far_storage, write_lmdb, write_recordio, write_tar, write_tfrecord
from PIL import Image
from rich.console import Console
from rich.table import Table

from dalify import fn, pipeline_def, storage, tfrecord, types
from photos import PHOTOGRAPHS, make_photos

OUT = Path("out/tutorials")
FOLDER = make_photos(OUT / "formats" / "files", images_per_class=24, longest_side=240)
CLASSES = sorted(PHOTOGRAPHS)
BATCH_SIZE, SIDE = 32, 128

# %% [markdown]
"""## 1. One dataset in all formats

`photos` is the dataset: the bytes of each JPEG file and the index of its class, in the order of
`fn.readers.file`. `tutorials/containers.py` writes the formats, with a few lines for each.

Tar and TFRecord get an index, which contains the offset of each record. dalify has tools to create it, with the same
names as in DALI. Without an index, a reader scans the whole container once before the first batch.
"""

# %%
paths = sorted(FOLDER.glob("*/*.jpg"))
photos = [(path.read_bytes(), CLASSES.index(path.parent.name)) for path in paths]
MADE = OUT / "formats" / "containers"
shutil.rmtree(MADE, ignore_errors=True)
MADE.mkdir(parents=True)

write_tar(MADE / "photos.tar", photos)
write_tfrecord(MADE / "photos.tfrecord", photos)
write_recordio(MADE / "photos.rec", photos)
write_lmdb(MADE / "photos.lmdb", photos)
columns = {"jpg": [encoded for encoded, _ in photos], "label": [label for _, label in photos]}
pyarrow.parquet.write_table(pyarrow.table(columns), MADE / "photos.parquet", row_group_size=64, compression="none")
for tool, kind in (("wds2idx", "tar"), ("tfrecord2idx", "tfrecord")):
    command = [sys.executable, "-m", f"dalify.tools.{tool}", str(MADE / f"photos.{kind}"), str(MADE / f"{kind}.idx")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print("index:", (MADE / f"{kind}.idx").read_text().splitlines()[:3], "...")

# NumPy files contain the input of the network: decoded and resized images.
(MADE / "arrays").mkdir()
for number, path in enumerate(paths):
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    np.save(MADE / "arrays" / f"{number:04}.npy", pixels)

# %% [markdown]
"""There is a reader for each format. Readers differ in their arguments and in the type of the label. Order, shards,
shuffling, resuming and the handling of bad samples are the same for all of them: see tutorial 08.

The last one reads no file format: `fn.readers.dataset` accepts any PyTorch dataset (or any object with a length and
`[index]`). Its code is called in the threads of the pipeline, or in worker processes with `processes=2`.
"""


# %%
class Photos(torch.utils.data.Dataset):
    """A dataset as in tutorial 01, which opens files and does not use dalify."""

    def __len__(self) -> int:
        return len(paths)

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        return np.fromfile(paths[number], np.uint8), CLASSES.index(paths[number].parent.name)


def of_tfrecord(**options):
    features = {
        "jpg": tfrecord.FixedLenFeature([], tfrecord.string, ""),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    found = fn.readers.tfrecord(path=str(MADE / "photos.tfrecord"), features=features, name="photos", **options)
    return found["jpg"], found["label"]


def of_tar(root: str = str(MADE), **options):
    kinds = {"ext": ["jpg", "label"], "dtypes": [types.UINT8, types.INT32]}
    return fn.readers.webdataset(paths=f"{root}/photos.tar", **kinds, name="photos", **options)


INDEXED_TAR = {"index_paths": str(MADE / "tar.idx")}
INDEXED_TFRECORD = {"index_path": str(MADE / "tfrecord.idx")}
READERS: dict[str, Callable] = {
    "files": lambda: fn.readers.file(file_root=str(FOLDER), name="photos"),
    "tar": lambda: of_tar(),
    "tar + index": lambda: of_tar(**INDEXED_TAR),
    "TFRecord": lambda: of_tfrecord(),
    "TFRecord + index": lambda: of_tfrecord(**INDEXED_TFRECORD),
    "RecordIO": lambda: fn.readers.mxnet(
        path=str(MADE / "photos.rec"), index_path=str(MADE / "photos.idx"), name="photos"
    ),
    "LMDB": lambda: fn.readers.caffe(path=str(MADE / "photos.lmdb"), name="photos"),
    "Parquet": lambda: fn.readers.parquet(paths=str(MADE / "photos.parquet"), columns=["jpg", "label"], name="photos"),
    "PyTorch Dataset": lambda: fn.readers.dataset(dataset=Photos(), name="photos"),
    "NumPy, decoded": lambda: (fn.readers.numpy(file_root=str(MADE / "arrays"), name="photos"), None),
}


@pipeline_def(batch_size=BATCH_SIZE, num_threads=1)
def reading(read: Callable):
    """Read without decoding."""
    encoded, _ = read()
    return encoded


@pipeline_def(batch_size=BATCH_SIZE, num_threads=1)
def training(read: Callable):
    """Read, decode and resize for training."""
    images, label = read()
    if label is None:
        return images
    return fn.resize(fn.decoders.image(images), size=[SIDE, SIDE]), fn.cast(label, dtype=types.INT32)


# %% [markdown]
"""First we check that every format returns the bytes and labels that were written.
"""


# %%
def first_epoch(pipe) -> list[tuple[np.ndarray, ...]]:
    samples: list[tuple[np.ndarray, ...]] = []
    while len(samples) < pipe.epoch_size("photos"):
        batch = pipe.run()
        samples += [tuple(output.at(i) for output in batch) for i in range(BATCH_SIZE)]
    return samples[: len(photos)]


@pipeline_def(batch_size=BATCH_SIZE, num_threads=1)
def as_it_is(read: Callable):
    return read()


for name, read in READERS.items():
    if name == "NumPy, decoded":
        continue
    samples = first_epoch(as_it_is(read))
    assert all(encoded.tobytes() == photo for (encoded, _), (photo, _) in zip(samples, photos, strict=True)), name
    assert [int(label.item()) for _, label in samples] == [label for _, label in photos], name
print(f"{len(photos)} photographs, identical bytes from", ", ".join(list(READERS)[:-1]))

# %% [markdown]
"""## 2. Measuring

The load of the machine varies. Therefore all formats are read alternately in several rounds, and the median of each is
reported. The first epoch of a pipeline is not measured, because it loads compiled code. The time to the first
batch is measured separately, with a new pipeline each time: building, scanning containers, reading.
"""


# %%
def samples_per_s(pipe) -> float:
    batches = -(-pipe.epoch_size("photos") // BATCH_SIZE)
    start = time.perf_counter()
    for _ in range(batches):
        pipe.run()
    return batches * BATCH_SIZE / (time.perf_counter() - start)


def medians(pipes: dict[str, object], rounds: int, epochs: int = 1) -> dict[str, float]:
    """Measure the samples per second of each pipeline in alternating rounds."""
    found: dict[str, list[float]] = {name: [] for name in pipes}
    for number in range(rounds + 1):
        for name, pipe in pipes.items():
            speed = statistics.median(samples_per_s(pipe) for _ in range(epochs))
            if number:
                found[name].append(speed)
    return {name: statistics.median(speeds) for name, speeds in found.items()}


def ms_to_first_batch(read: Callable) -> float:
    start = time.perf_counter()
    reading(read).run()
    return 1000 * (time.perf_counter() - start)


read_speed = medians({name: reading(read) for name, read in READERS.items()}, rounds=5, epochs=3)
train_speed = medians({name: training(read) for name, read in READERS.items()}, rounds=3)
first_ms = {name: statistics.median(ms_to_first_batch(read) for _ in range(5)) for name, read in READERS.items()}


def megabytes(*found: Path) -> float:
    files = [file for path in found for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6


sizes = dict.fromkeys(READERS, megabytes(*paths)) | {
    "tar": megabytes(MADE / "photos.tar"),
    "tar + index": megabytes(MADE / "photos.tar", MADE / "tar.idx"),
    "TFRecord": megabytes(MADE / "photos.tfrecord"),
    "TFRecord + index": megabytes(MADE / "photos.tfrecord", MADE / "tfrecord.idx"),
    "RecordIO": megabytes(MADE / "photos.rec", MADE / "photos.idx"),
    "LMDB": megabytes(MADE / "photos.lmdb"),
    "Parquet": megabytes(MADE / "photos.parquet"),
    "NumPy, decoded": megabytes(MADE / "arrays"),
}
table = Table("format", title=f"{len(photos)} photographs on this machine, one thread")
for heading in ("MB on disk", "first batch, ms", "reading only, samples/s", "decoded and resized, samples/s"):
    table.add_column(heading, justify="right")
for name in READERS:
    speeds = f"{read_speed[name]:,.0f}", f"{train_speed[name]:,.0f}"
    table.add_row(name, f"{sizes[name]:.1f}", f"{first_ms[name]:.1f}", *speeds)
Console(width=110).print(table)

# %% [markdown]
"""## 3. Remote storage

Any path may be a URL that fsspec supports: `s3://`, `gs://`, `https://`. Here it is a web server on this machine that
needs 20 ms for each response, similar to object storage. Sequential requests would give at most 50 photographs per
second. dalify requests the samples of future batches in 32 threads, so that the delays overlap.

`storage.configure(cache_folder=...)` caches the data on disk: from the second epoch on, there are no requests.
An archive with an index is read in parts, with one request per sample. An archive without an index is downloaded once
as a whole.
"""

# %%
CACHE = OUT / "formats" / "cache"
shutil.rmtree(CACHE, ignore_errors=True)
DELAY_S = 0.02
far_speed: dict[str, float] = {}
with far_storage(OUT / "formats", DELAY_S) as url:
    remote = {
        "files": lambda: fn.readers.file(file_root=f"{url}/files", name="photos"),
        "tar + index": lambda: of_tar(f"{url}/containers", index_paths=f"{url}/containers/tar.idx"),
        "tar, copied once": lambda: of_tar(f"{url}/containers"),
    }
    samples = first_epoch(as_it_is(remote["files"]))
    assert all(encoded.tobytes() == photo for (encoded, _), (photo, _) in zip(samples, photos, strict=True))
    for name, read in remote.items():  # one after the other: all readers use a copy of the archive once it exists
        far_speed[f"{name}, remote"] = medians({name: training(read)}, rounds=3)[name]
    storage.configure(cache_folder=CACHE)
    pipe = training(remote["files"])
    samples_per_s(pipe)  # fills the cache
    far_speed["files, remote, cached"] = medians({"files": pipe}, rounds=2)["files"]
    storage.configure()
print(f"the cache contains {sum(1 for _ in CACHE.iterdir())} files, {megabytes(CACHE):.1f} MB")

table = Table("20 ms delay", "decoded and resized, samples/s", title="the same photographs on a web server")
table.add_row("files, one request after the other", f"at most {1 / DELAY_S:.0f}")
for name, speed in far_speed.items():
    table.add_row(name, f"{speed:,.0f}")
table.add_row("files, on this machine", f"{train_speed['files']:,.0f}")
Console(width=110).print(table)
assert far_speed["files, remote"] > 1.5 / DELAY_S  # requests overlap

# %% [markdown]
"""## 4. All results in one chart"""

# %%
figure, axes = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
panels = [
    ("reading only, samples/s", read_speed, "tab:blue"),
    ("decoded and resized, samples/s", train_speed, "tab:orange"),
    ("20 ms delay: decoded and resized", far_speed, "tab:green"),
]
for axis, (title, speeds, color) in zip(axes, panels, strict=True):
    bars = axis.barh(list(speeds), list(speeds.values()), color=color)
    axis.bar_label(bars, [f"{speed:,.0f}" for speed in speeds.values()], padding=3)
    axis.invert_yaxis()
    axis.set_title(title)
    axis.set_xlim(0, 1.2 * max(speeds.values()))
    axis.set_xticks([])  # the bars have labels
    axis.spines[["top", "right", "bottom"]].set_visible(False)
figure.savefig(OUT / "07_formats.png", dpi=100)
plt.close(figure)
print("chart:", OUT / "07_formats.png")

# %% [markdown]
"""## 5. Choosing a format

The second panel is the most important: if JPEG files are decoded, decoding takes nearly all of the time, and all
containers on a local disk have a similar speed. Then choose a format for other reasons.

| format | use it for | disadvantages |
|---|---|---|
| files | data that you inspect and change; up to about 100,000 files | slow to list and copy |
| tar (WebDataset) | remote storage, slow disks; many tools support it | needs a scan or an index; cannot be modified |
| TFRecord | existing data from TensorFlow | the same; features must be declared |
| RecordIO | existing data from MXNet | only MXNet and DALI support it |
| LMDB | many small records, several processes on one machine | remote databases are downloaded first |
| Parquet | tables with images, as many datasets are published | is shuffled by row groups, which are held in memory |
| NumPy | features, volumes, windows of large arrays | disk space: see the first column of the table above |
| PyTorch Dataset | existing code; computed samples | Python code per sample; `processes=` helps |
| a URL with a cache | more data than fit on this machine | the first epoch depends on the network speed |

Three rules. If the second panel shows equal speeds, keep your format. For remote data, use an archive with an index,
or files with a cache. If decoding is the bottleneck and disk space is available, store decoded data.

Next: [08_many_processes_stop_and_resume.py](08_many_processes_stop_and_resume.py).
"""
