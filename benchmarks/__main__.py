"""Run all benchmarks, or those named on the command line."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.common import Options, UsageError
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
        help="operators to time, for instance: pad,paste,random.beta; or pipelines of scaling: training,ssd",
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
    if not options.is_smoke:  # otherwise it happens during a measurement, when many images have been decoded
        jpeg_decoder.compile()
    try:
        for name in arguments.names or BENCHMARKS:
            importlib.import_module(f"benchmarks.{name}").main(options)
    except UsageError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
