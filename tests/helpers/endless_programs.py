"""Programs of every mode of dalify that run until they are interrupted or killed.

Each prints ``ready`` when it starts to run batches. Its argument is a folder of photos.
"""

from __future__ import annotations

import os

import psutil

BEGIN = """
import os, sys, time
import numpy as np

def ready():
    print("ready", flush=True)

def source(info):
    return np.full((20, 20), info.idx_in_epoch)

def late_source(info):
    if info.iteration:
        time.sleep(3600)
    return np.full((20, 20), info.idx_in_epoch)

class Items:
    def __init__(self, is_late):
        self.is_late = is_late

    def __len__(self):
        return 1000

    def __getitem__(self, number):
        if self.is_late and number > 30:
            time.sleep(3600)
        return np.full((20, 20), number)

folder = sys.argv[1]
"""
PHOTOS = """
from dalify import fn, pipeline_def

@pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=3)
def photos():
    encoded, label = fn.readers.file(file_root=folder, random_shuffle=True, name="Reader")
    image = fn.rotate(fn.resize(fn.decoders.image(encoded), size=[60, 60]), angle=10.0, fill_value=0)
    return fn.crop_mirror_normalize(image, mean=[128.0] * 3, std=[60.0] * 3), label
"""
PARALLEL = """
from dalify import fn, pipeline_def

@pipeline_def(batch_size=8, num_threads=2, py_num_workers=2, py_start_method="{method}")
def batches():
    return fn.external_source({source}, batch=False, parallel=True, prefetch_queue_depth=2) + 1

if __name__ == "__main__":
    pipe = batches()
    pipe.build()
    ready()
    while True:
        pipe.run()
"""
DATASET = """
from dalify import fn, pipeline_def

@pipeline_def(batch_size=8, num_threads=2)
def batches():
    return fn.readers.dataset(dataset=Items({is_late}), num_outputs=1, processes=2)

pipe = batches()
pipe.build()
ready()
while True:
    pipe.run()
"""
LOADER = """
import torch
from tests.helpers.torchvision_import import import_torchvision
transforms = import_torchvision("torchvision.transforms.v2")
datasets = import_torchvision("torchvision.datasets")
from dalify.plugin.pytorch import DataLoader

steps = [transforms.Resize((60, 60)), {own} transforms.ToImage(), transforms.ToDtype(torch.float32, scale=True)]
loader = DataLoader(
    datasets.ImageFolder(folder, transforms.Compose(steps)), batch_size=4, num_workers=2, multiprocessing_context="fork"
)
ready()
while True:
    for _ in loader:
        pass
"""
PROCESSES = (
    PHOTOS.replace("queue_depth=3", "queue_depth=3, processes=2, py_start_method='{method}'")
    + """
if __name__ == "__main__":
    pipe = photos()
    pipe.build()
    ready()
    while True:
        pipe.run()
"""
)
PROCESSES_LATE = """
from dalify import fn, pipeline_def

def late(value):
    if value > 5:
        time.sleep(3600)
    return value

@pipeline_def(batch_size=2, num_threads=2, processes=2, prefetch_queue_depth=4)
def batches():
    numbers = fn.external_source(lambda number: np.full(2, number, np.int64))
    return fn.python_function(numbers, function=late, parallel=True)

if __name__ == "__main__":
    pipe = batches()
    pipe.build()
    ready()
    while True:
        pipe.run()
"""
CALLS = """
import dalify
from dalify import eager
image = np.zeros((100, 90, 3), np.uint8)
{before}
ready()
while True:
    {call}
"""

PROGRAMS = {
    "pipeline": PHOTOS + "pipe = photos()\npipe.run()\nready()\nwhile True: pipe.run()",
    "first batch": PHOTOS + "ready()\npipe = photos()\nwhile True: pipe.run()",
    "debug mode": PHOTOS.replace("prefetch_queue_depth=3", "debug=True")
    + "pipe = photos()\nready()\nwhile True: pipe.run()",
    "iterator": PHOTOS
    + "from dalify.plugin.pytorch import DALIGenericIterator\n"
    + "batches = DALIGenericIterator(photos(), ['x', 'y'], reader_name='Reader', auto_reset=True)\nready()\n"
    + "while True:\n    for batch in batches: pass",
    "parallel, fork": PARALLEL.format(method="fork", source="source"),
    "parallel, spawn": PARALLEL.format(method="spawn", source="source"),
    "parallel, forkserver": PARALLEL.format(method="forkserver", source="source"),
    "parallel, late": PARALLEL.format(method="fork", source="late_source"),
    "dataset": DATASET.format(is_late=False),
    "dataset, late": DATASET.format(is_late=True),
    "processes, fork": PROCESSES.format(method="fork"),
    "processes, spawn": PROCESSES.format(method="spawn"),
    "processes, forkserver": PROCESSES.format(method="forkserver"),
    "processes, late": PROCESSES_LATE,
    "loader with threads": LOADER.format(own=""),
    "loader with processes": LOADER.format(own="transforms.Lambda(abs if folder == 0 else lambda x: x),"),
    "eager": CALLS.format(before="", call="eager.rotate(eager.resize(image, size=[64, 64]), angle=30.0, fill_value=0)"),
    "lazy": CALLS.format(
        before="",
        call="with dalify.lazy(): "
        "np.asarray(eager.rotate(eager.resize(image, size=[64, 64]), angle=30.0, fill_value=0))",
    ),
    "dynamic": CALLS.format(
        before="import dalify.experimental.dynamic as ndd\nimages = ndd.Batch([image] * 8)",
        call="ndd.rotate(ndd.resize(images, size=[64, 64]), angle=30.0, fill_value=0).evaluate()",
    ),
    "function that takes long": "from dalify import fn, pipeline_def\n"
    "def waits(x):\n    time.sleep(3600)\n    return x\n"
    "@pipeline_def(batch_size=8, num_threads=2)\n"
    "def batches(): return fn.python_function(fn.external_source(lambda i: np.zeros((8, 4))), function=waits)\n"
    "pipe = batches()\nready()\npipe.run()",
}


def session_of(process: int) -> list[psutil.Process]:
    """Return the running processes of a session."""
    found = []
    for other in psutil.process_iter():
        try:
            if os.getsid(other.pid) == process and other.status() != psutil.STATUS_ZOMBIE:
                found.append(other)
        except (ProcessLookupError, PermissionError, psutil.Error):
            pass
    return found
