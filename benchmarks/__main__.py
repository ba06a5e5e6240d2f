"""Run all benchmarks, or those named on the command line."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.common import Options, UsageError
from dalify.base.processors import available_processors
from dalify.codecs.decode_batch import jpeg_decoder

BENCHMARKS = [
    "resnet_training",
    "resnet_validation",
    "caching",
    "dataloader_dropin",
    "auto_augment",
    "external_source",
    "frameworks",
    "readers",
    "conditional",
    "modes",
    "audio_decoding",
    "speech",
    "video",
    "image_formats",
    "operators",
    "kernels",
    "scaling",
    "gpu",
    "startup",
    "processes",
    "costs",
    "ranks",
    "ray",
]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _check_all() -> int:
    """Run all benchmarks briefly, in as many processes as there are processors; return the highest exit status."""
    project = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    count = min(available_processors(), len(BENCHMARKS))
    running: list[subprocess.Popen[str]] = []
    for share in range(count):
        folder = Path(f"out/smoke_{share}")  # for the generated data of a process
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks", "--smoke", *BENCHMARKS[share::count]]
        running.append(
            subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    for process in running:
        print(process.communicate()[0], flush=True)
    return max(process.returncode for process in running)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(BENCHMARKS)}")
    parser.add_argument("--data", type=Path, help="class folders of JPEG files; default: generated")
    parser.add_argument("--rounds", type=int, default=Options.rounds, help="rounds per contender (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=Options.seconds, help="seconds per contender and round (%(default)s)"
    )
    parser.add_argument(
        "--only",
        type=_names,
        default=(),
        help="operators to time, for instance: pad,paste,random.beta; or pipelines of scaling: training,ssd; "
        "or extensions of image_formats: bmp,tif",
    )
    parser.add_argument(
        "--threads", type=_numbers, default=(), help="scaling: real numbers of threads; default: 1, 2, 4, … all cores"
    )
    parser.add_argument("--json", type=Path, help="scaling, gpu: also write the figures to this file")
    parser.add_argument(
        "--resume", action="store_true", help="gpu: leave out what was begun according to the file of --json"
    )
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(BENCHMARKS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    options = Options(
        data=arguments.data,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        is_smoke=arguments.smoke,
        only=arguments.only,
        threads=arguments.threads,
        json=arguments.json,
        resumes=arguments.resume,
    )
    if options.is_smoke and not arguments.names and not arguments.data:
        sys.exit(_check_all())
    if not options.is_smoke:  # otherwise it is compiled during a measurement, after many images
        jpeg_decoder.compile()
    try:
        for name in arguments.names or BENCHMARKS:
            importlib.import_module(f"benchmarks.{name}").main(options)
    except UsageError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
