"""Measure CPU time and bytes per image and step. ``dalify.tools.plan`` uses these figures as constants.

All times are CPU times, which hardly depend on other programs: of one thread per image, and of sender and receiver for
transport. Pipelines alternate; each figure is the median.
"""

from __future__ import annotations

import os
import socket
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, Options, RunBatch, library, photo_folder, take_turn
from benchmarks.training_pipeline import DEVIATION, MEAN
from tutorials.photos import make_photos

BATCH_SIZE = 64
SIZE = 224
STEPS = {
    "read": "reading the file",
    "decode": "decoding",
    "uint8": f"decoding, random crop and resize to {SIZE}x{SIZE}, uint8",
    "float32": "the same, normalized, float32",
    "float16": "the same, normalized, float16",
    "normalize": "only normalizing, uint8 to float32",
}
WARM_UP_BATCHES = 3
PIECE_BYTES = 1 << 20  # per call of send and recv


def main(options: Options) -> None:
    """Print the costs of steps, a formula for decoding, and the cost of transport."""
    _print_steps(photo_folder(options), options)
    _print_formula(options)
    _print_transport(options)


def _pipeline(lib: Any, folder: str, step: str) -> Any:
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, seed=1)
    def pipeline():
        dtype = types.FLOAT16 if step == "float16" else types.FLOAT
        normal = {"dtype": dtype, "output_layout": "CHW", "mean": MEAN, "std": DEVIATION}
        if step == "normalize":
            image = types.Constant(np.zeros((SIZE, SIZE, 3), np.uint8), layout="HWC")
            return fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(), **normal)
        encoded, _ = fn.readers.file(file_root=folder, random_shuffle=True)
        if step == "read":
            return encoded
        images = fn.decoders.image(encoded)
        if step == "decode":
            return images
        images = fn.random_resized_crop(images, size=(SIZE, SIZE))
        if step == "uint8":
            return fn.flip(images, horizontal=fn.random.coin_flip())
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **normal)

    return pipeline()


def _bytes_per_image(pipe: Any) -> float:
    (batch,) = pipe.run()
    return statistics.mean(np.asarray(batch.at(place)).nbytes for place in range(len(batch)))


def _measured(asked: Sequence[tuple[Path, str]], options: Options) -> list[tuple[list[float], float]]:
    """Return the CPU ms per image of each round and the bytes per image, for folders and steps."""
    rounds, seconds = (1, 0.05) if options.is_smoke else (options.rounds, options.seconds)
    lib = library(OURS)
    found: list[tuple[list[float], float]] = []
    with ExitStack() as stack:
        running: list[RunBatch] = []
        for folder, step in asked:
            pipe = _pipeline(lib, str(folder), step)
            pipe.build()
            stack.callback(pipe.close)
            found.append(([], _bytes_per_image(pipe)))
            running.append(lambda pipe=pipe: len(pipe.run()[0]))
        for _ in range(rounds):
            for run_batch, (costs, _) in zip(running, found, strict=True):
                costs.append(take_turn(run_batch, seconds, WARM_UP_BATCHES).cpu_us_per_sample / 1e3)
    return found


def _print_steps(folder: Path, options: Options) -> None:
    measured = _measured([(folder, step) for step in STEPS], options)
    table = Table(title="photographs, CPU time of one thread", title_justify="left")
    for heading in ("up to and including", "ms per image", "min – max", "kB of output", "megapixels"):
        table.add_column(heading, justify="left" if heading.startswith("up") else "right")
    for (step, title), (found, size) in zip(STEPS.items(), measured, strict=True):
        megapixels = f"{size / 3e6:.3f}" if step == "decode" else ""
        spread = f"{min(found):.3f} – {max(found):.3f}"
        table.add_row(title, f"{statistics.median(found):.3f}", spread, f"{size / 1e3:,.0f}", megapixels)
    Console().print(table)


def _print_formula(options: Options) -> None:
    """Fit the time per image as a linear function of its pixels and the bytes of its file, and print the formula."""
    sides, qualities = ((100, 200), (60, 95)) if options.is_smoke else ((250, 500, 1000), (60, 80, 95))
    folders = [
        make_photos(Path(f"out/costs_{side}_{quality}"), images_per_class=8, longest_side=side, quality=quality)
        for side in sides
        for quality in qualities
    ]
    steps = ("read", "decode", "uint8")
    found = iter(_measured([(folder, step) for folder in folders for step in steps], options))
    rows: list[tuple[float, float, float]] = []  # megapixels, MB, ms
    for _ in folders:
        (_, stored), (_, decoded), (milliseconds, _) = (next(found) for _ in steps)
        rows.append((decoded / 3e6, stored / 1e6, statistics.median(milliseconds)))
    known, wanted = np.array([(1.0, *row[:2]) for row in rows]), np.array([row[2] for row in rows])
    factors = np.linalg.lstsq(known / wanted[:, None], np.ones(len(rows)), rcond=None)[0]  # minimizes relative errors
    table = Table(title="decoding, random crop and resize: formula", title_justify="left")
    for heading in ("megapixels", "kB stored", "ms per image", "by the formula"):
        table.add_column(heading, justify="right")
    for row, formula in zip(rows, known @ factors, strict=True):
        table.add_row(f"{row[0]:.3f}", f"{row[1] * 1e3:,.0f}", f"{row[2]:.3f}", f"{formula:.3f}")
    Console().print(table)
    each, per_megapixel, per_megabyte = factors
    print(f"ms = {each:.2f} + {per_megapixel:.2f} x megapixels + {per_megabyte:.2f} x MB stored\n")


def _print_transport(options: Options) -> None:
    rounds, size = (1, 1 << 24) if options.is_smoke else (options.rounds, 1 << 31)
    table = Table(title="transport, CPU seconds per GB", title_justify="left")
    for heading in ("", "median", "min – max"):
        table.add_column(heading, justify="right" if heading else "left")
    for title, measure in (("TCP on this machine, sender and receiver", _tcp), ("a copy in memory", _copy)):
        found = [measure(size) for _ in range(rounds)]
        table.add_row(title, f"{statistics.median(found):.2f}", f"{min(found):.2f} – {max(found):.2f}")
    Console().print(table)


def _tcp(size: int) -> float:
    """Return the CPU seconds per GB through a socket, for sender and receiver together."""
    content, target = os.urandom(PIECE_BYTES), bytearray(PIECE_BYTES)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()

        def send() -> None:
            for _ in range(size // PIECE_BYTES):
                sender.sendall(content)

        before = time.process_time()
        thread = threading.Thread(target=send)
        thread.start()
        with receiver:
            left = size
            while left:
                left -= receiver.recv_into(target, min(left, PIECE_BYTES))
        thread.join()
        return (time.process_time() - before) / size * 1e9


def _copy(size: int) -> float:
    """Return the CPU seconds per GB of a copy in memory, of blocks larger than the CPU caches."""
    block = min(size, 1 << 28)
    source, target = np.ones(block, np.uint8), np.ones(block, np.uint8)
    before = time.process_time()
    for _ in range(size // block):
        target[...] = source
    return (time.process_time() - before) / size * 1e9
