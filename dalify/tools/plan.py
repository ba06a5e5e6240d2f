"""Recommend threads, processes and machines for a training job.

``python -m dalify.tools.plan --gpus 8 --images-per-second 3000``. The recommendation lists the assumptions about images
and machines; each one is an option, and ``--measure module:function`` measures a pipeline of the user. docs/scaling.md
says how the constants were measured.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DalifyError
from dalify.base.wording import counted
from dalify.pipeline import Pipeline
from dalify.tools.planning import DTYPE_BYTES, Costs, Job, Placement, Recommendation, recommend

_PROGRAM = "python -m dalify.tools.plan"
# Measured: the photographs of benchmarks, 500 pixels on their longer side.
_MEGAPIXELS = 0.2
_JPEG_BYTES_PER_MEGAPIXEL = 345_000
_MAX = 1e12
_MIN_BATCHES = 30  # of --measure


def _number(*, at_most: float = _MAX, may_be_zero: bool = False) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not (0 <= value <= at_most if may_be_zero else 0 < value <= at_most):
            minimum = "at least" if may_be_zero else "above"
            raise argparse.ArgumentTypeError(f"must be {minimum} 0 and at most {at_most:g}; got {text}")
        return value

    return parse


def _count(minimum: int = 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
        if not minimum <= value <= _MAX:
            raise argparse.ArgumentTypeError(f"must be at least {minimum} and at most {_MAX:g}; got {text}")
        return value

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        usage="%(prog)s --gpus N --images-per-second N [options]",  # the default lists all options before each error
        description="Recommend threads, processes and machines for a training job.",
        epilog="Example: %(prog)s --gpus 8 --images-per-second 3000",
    )
    job = parser.add_argument_group("the job")
    job.add_argument("--gpus", type=_count(), required=True, help="total number of GPUs")
    job.add_argument(
        "--images-per-second", type=_number(), required=True, help="images per second that ONE GPU processes"
    )
    job.add_argument("--batch-size", type=_count(), default=64, help="batch size of each GPU (%(default)s)")
    job.add_argument("--prefetch", type=_count(), default=2, help="prefetch_queue_depth (%(default)s)")
    machines = parser.add_argument_group("machines")
    machines.add_argument("--gpus-per-node", type=_count(), default=8, help="GPUs of a machine (%(default)s)")
    machines.add_argument(
        "--cores-per-node", type=_count(), default=64, help="CPU cores of a machine with GPUs (%(default)s)"
    )
    machines.add_argument(
        "--cores-per-cpu-node", type=_count(), default=64, help="CPU cores of a machine without GPUs (%(default)s)"
    )
    machines.add_argument(
        "--gbit-per-node", type=_number(), default=100.0, help="network bandwidth for data, in each direction (100)"
    )
    machines.add_argument(
        "--trainer-cores", type=_count(0), default=1, help="CPU cores per GPU that the training needs (%(default)s)"
    )
    machines.add_argument(
        "--headroom", type=_number(may_be_zero=True, at_most=10), default=0.1, help="fraction of spare cores (0.1)"
    )
    images = parser.add_argument_group("images")
    images.add_argument("--megapixels", type=_number(at_most=1e6), help=f"size of the stored images ({_MEGAPIXELS})")
    images.add_argument(
        "--bytes-per-image", type=_number(), help=f"size of the files ({_JPEG_BYTES_PER_MEGAPIXEL:,} per megapixel)"
    )
    images.add_argument("--size", type=_count(), help="height and width of the output, with 3 channels (224)")
    images.add_argument("--values-per-image", type=_count(), help="elements of an output image, instead of --size")
    images.add_argument("--dtype", choices=DTYPE_BYTES, help="element type of the output (float32)")
    costs = parser.add_argument_group("your measurements")
    costs.add_argument(
        "--images-per-second-per-core",
        type=_number(),
        help="throughput of the whole pipeline, instead of the constants",
    )
    costs.add_argument(
        "--measure",
        metavar="MODULE:FUNCTION",
        help="function without arguments that returns a pipeline; its CPU time per image and its output are measured",
    )
    costs.add_argument("--seconds", type=_number(), default=5.0, help="duration of --measure (5)")
    costs.add_argument(
        "--python-ms",
        type=_number(may_be_zero=True),
        default=0.0,
        help="CPU ms per image in your Python functions, part of --images-per-second-per-core and --measure (0)",
    )
    costs.add_argument(
        "--transport-s-per-gb", type=_number(may_be_zero=True), help="CPU seconds of sender and receiver (0.3)"
    )
    costs.add_argument("--process-mb", type=_number(may_be_zero=True), help="memory of a process (200)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a plan; return the exit status: 0, or 1 if no option fits or a measurement fails.

    Args:
        arguments: command-line arguments; None: the arguments of the process.

    Raises:
        SystemExit: with status 2, an argument is wrong.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        costs = _costs(given)
    except ArgumentValueError as error:
        parser.error(str(error))
    except DalifyError as error:
        print(f"{_PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    job = Job(**{name: getattr(given, name) for name in Job.__dataclass_fields__})
    recommendation = recommend(job, costs)
    print(_report(job, costs, recommendation))
    return 0 if recommendation.chosen else 1


def _costs(given: argparse.Namespace) -> Costs:
    if given.measure and given.images_per_second_per_core:
        raise ArgumentValueError("--measure and --images-per-second-per-core cannot be used together.")
    if given.size and given.values_per_image:
        raise ArgumentValueError("--size and --values-per-image cannot be used together.")
    is_measured = bool(given.measure or given.images_per_second_per_core)
    if is_measured and given.megapixels and given.bytes_per_image:
        raise ArgumentValueError(
            "--megapixels has no effect if the pipeline is measured and --bytes-per-image is specified; omit it."
        )
    if given.measure and (given.size or given.values_per_image or given.dtype):
        raise ArgumentValueError(
            "--measure determines the output of the pipeline; omit --size, --values-per-image and --dtype."
        )
    megapixels = given.megapixels or _MEGAPIXELS
    stored_bytes = given.bytes_per_image or megapixels * _JPEG_BYTES_PER_MEGAPIXEL
    values, dtype = given.values_per_image or 3 * (given.size or 224) ** 2, given.dtype or "float32"
    if is_measured:
        if given.measure:
            prepare_ms, values, dtype = _measure(given.measure, given.seconds)
        else:
            prepare_ms = 1e3 / given.images_per_second_per_core
        if given.python_ms > prepare_ms:
            raise ArgumentValueError(
                f"--python-ms={given.python_ms:g} is part of the {prepare_ms:g} ms that an image takes in total."
            )
        make = partial(Costs.measured, prepare_ms=prepare_ms)
    else:
        make = partial(Costs.of_jpeg, megapixels=megapixels)
    costs = make(stored_bytes=stored_bytes, values=values, dtype=dtype, python_ms=given.python_ms)
    replaced = {name: getattr(given, name) for name in ("transport_s_per_gb", "process_mb")}
    return replace(costs, **{name: value for name, value in replaced.items() if value is not None})


# -- measure a pipeline of the user


def _measure(reference: str, seconds: float) -> tuple[float, int, str]:
    """Return the CPU time per image in ms, the number of values of an image, and their element type."""
    pipe = _pipeline_of(reference)
    try:
        outputs = _next_batch(pipe)
        for _ in range(2):  # the first batches compile kernels and read files that are not cached
            outputs = _next_batch(pipe)
        if multiprocessing.active_children():
            raise ArgumentValueError(
                "--measure measures only the CPU time of this process, but the pipeline has worker processes.",
                hint="Measure it without processes= and parallel=True: the CPU time per image is the same.",
            )
        largest = max((_samples(output) for output in outputs), key=_bytes_of)
        count, batches, start, end = 0, 0, time.process_time(), time.monotonic() + seconds
        # The progress of prefetched batches differs between start and end, so few batches would be inaccurate.
        while batches < _MIN_BATCHES or time.monotonic() < end:
            count += len(_next_batch(pipe)[0])
            batches += 1
        spent = max(time.process_time() - start, 1e-9)
    finally:
        pipe.close()
    dtype = str(largest[0].dtype)
    if dtype not in DTYPE_BYTES:
        same_size = {1: "uint8", 2: "float16"}
        dtype = same_size.get(largest[0].dtype.itemsize, "float32")
    values = max(1, round(_bytes_of(largest) / len(largest) / DTYPE_BYTES[dtype]))
    return spent / count * 1e3, values, dtype


def _next_batch(pipe: Pipeline) -> tuple[Any, ...]:
    """Return the next batch; start again after the end of the data."""
    try:
        return pipe.run()
    except StopIteration:
        pipe.reset()
        return pipe.run()


def _samples(output: Any) -> list[np.ndarray[Any, Any]]:
    output = output.as_cpu()
    return [np.asarray(output.at(index)) for index in range(len(output))]


def _bytes_of(samples: list[np.ndarray[Any, Any]]) -> int:
    return sum(sample.nbytes for sample in samples)


def _pipeline_of(reference: str) -> Pipeline:
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise ArgumentValueError(f"--measure takes MODULE:FUNCTION, for instance train:pipeline; got {reference!r}.")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise ArgumentValueError(
            f"--measure: there is no module {module_name!r}.", hint="Run this in the folder of your program."
        ) from None
    function = getattr(module, name, None)
    if not callable(function):
        raise ArgumentValueError(f"--measure: {module_name} has no function {name!r}.")
    pipe = function()
    if not isinstance(pipe, Pipeline):
        raise ArgumentTypeError(
            f"--measure: {reference} must return a Pipeline; got {type(pipe).__name__}.",
            hint="Name a function that takes no arguments, such as one made by @pipeline_def(batch_size=64, ...).",
        )
    return pipe


# -- the report


def _report(job: Job, costs: Costs, recommendation: Recommendation) -> str:
    parts = [
        f"{counted(job.gpus, 'GPU')} that take{'s' * (job.gpus == 1)} {job.images_per_second:,.0f} images/s each: "
        f"{job.total_rate:,.0f} images/s",
        "",
        *_recommended_lines(job, costs, recommendation),
        "",
        *_table(job, recommendation),
        "",
        *_assumptions(job, costs),
    ]
    return "\n".join(line.rstrip() for line in parts)


def _recommended_lines(job: Job, costs: Costs, recommendation: Recommendation) -> list[str]:
    chosen = recommendation.chosen
    if chosen is None:
        return [
            "Nothing fits: see the last row of each column.",
            "Take machines with more cores or a faster network, fewer GPUs per machine, smaller or cheaper images.",
        ]
    nodes = counted(job.gpu_nodes, "GPU node")
    if not chosen.cpu_nodes:
        lines = [f"Recommended: send JPEG, decode where the images are used. {nodes}, no other nodes."]
        processes = f", processes={recommendation.processes}" if recommendation.processes else ""
        lines.append(f"  each GPU's pipeline    num_threads={recommendation.threads}{processes}")
        if not recommendation.processes:
            lines.append("  worker processes       none: so few threads of compiled operators need none")
        elif not costs.python_ms:
            lines.append("  worker processes       few threads share an interpreter")
        lines.append(f"  cores of a GPU node    {_used_cores(job, chosen)} of {job.cores_per_node:,}")
    else:
        actors = f"RayPipeline(workers={chosen.workers}, cpus_per_worker={chosen.cores_per_worker})"
        lines = [
            f"Recommended: prepare images on {counted(chosen.cpu_nodes, 'CPU node')}, send {chosen.sent} to {nodes}.",
            f"  on the CPU nodes       {chosen.workers:,} workers with num_threads={chosen.cores_per_worker} each,",
            f"                         for instance {actors}",
            f"  cores of a GPU node    {_used_cores(job, chosen)} of {job.cores_per_node:,}, to receive"
            + (" and to convert to floats" if chosen.sent != costs.dtype else ""),
        ]
    stored = job.total_rate * costs.stored_bytes / 1e9
    lines.append(f"  read from storage      {_short(stored)} GB/s in total")
    lines.append(f"  network of a GPU node  {_short(chosen.node_gbit)} of {job.gbit_per_node:,.4g} Gbit/s")
    if chosen.cpu_nodes:
        lines.append(f"  network of a CPU node  {_short(chosen.cpu_node_gbit)} of {job.gbit_per_node:,.4g} Gbit/s")
    lines.append(f"  memory of a GPU node   {_short(recommendation.node_gb)} GB for processes and batches")
    if chosen.cpu_nodes:
        lines.append(f"  memory of a CPU node   {_short(recommendation.cpu_node_gb)} GB for processes and batches")
    return lines


def _short(value: float) -> str:
    """Format with three significant digits, or as an integer from 100."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _used_cores(job: Job, placement: Placement) -> str:
    for_data = job.gpus_of_node * placement.cores_per_gpu
    trainers = job.gpus_of_node * job.trainer_cores
    return f"{for_data:,} for data, {trainers:,} for the trainers,"


def _table(job: Job, recommendation: Recommendation) -> list[str]:
    placements = recommendation.placements
    rows = [
        ["sent to the GPU nodes", *(placement.sent for placement in placements)],
        ["bytes per image", *(f"{placement.bytes_per_image:,.0f}" for placement in placements)],
        [
            "to the GPU nodes, GB/s in total",
            *(_short(job.total_rate * placement.bytes_per_image / 1e9) for placement in placements),
        ],
        ["Gbit/s into a GPU node", *(_short(placement.node_gbit) for placement in placements)],
        ["cores per GPU for data", *(f"{placement.cores_per_gpu:,}" for placement in placements)],
        ["cores busy on CPU nodes", *(_short(placement.cpu_cores) for placement in placements)],
        ["CPU nodes", *(f"{placement.cpu_nodes:,}" for placement in placements)],
        ["fits", *("no" if placement.problems else "yes" for placement in placements)],
    ]
    first = max(len(row[0]) for row in rows)
    widths = [max(len(row[column]) for row in rows) for column in range(1, len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))])
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in [first, *widths]))
    return [*lines, *(f"  {placement.sent}: {each}" for placement in placements for each in placement.problems)]


def _assumptions(job: Job, costs: Costs) -> list[str]:
    per_core = 1e3 / costs.prepare_ms
    return [
        "Assumed; every figure is an option, see --help:",
        f"  an image is stored in {costs.stored_bytes:,.0f} bytes and becomes {counted(costs.values, 'value')} of "
        f"{costs.dtype}",
        f"  {costs.prepare_ms:.3g} ms of CPU time per image ({per_core:,.0f} images/s per core)"
        + (f", {costs.python_ms:.3g} ms of it in Python functions" if costs.python_ms else ""),
        f"  {costs.transport_s_per_gb:g} s of CPU time per GB sent, {job.headroom:.0%} of the cores to spare",
        f"  nodes of at most {counted(job.gpus_per_node, 'GPU')}; "
        f"{job.cores_per_node:,} cores with GPUs, {job.cores_per_cpu_node:,} without; {job.gbit_per_node:,.4g} Gbit/s",
    ]


if __name__ == "__main__":
    sys.exit(main())
