"""How fast is the pipeline that trains ResNet-50: decode, random_resized_crop 224, mirror, normalise to float CHW?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.common import Contender, Options, compare, photo_folder, pipelines
from benchmarks.torch_loader import run_data_loader, training_transform

__all__ = ["main", "training"]

BATCH_SIZE = 64
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
DEVIATION = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def training(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    """Define the pipeline with dalify or with DALI."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.random_resized_crop(images, size=224)
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=MEAN,
            std=DEVIATION,
            mirror=fn.random.coin_flip(),
        )
        return images, labels

    return pipeline()


def main(options: Options) -> None:
    """One thread, then two."""
    folder = photo_folder(options)
    speed = {}
    for threads in (1, 2):
        loader = Contender(
            f"torch DataLoader, {threads} worker{'s' * (threads > 1)}",
            lambda workers=threads: run_data_loader(folder, training_transform, BATCH_SIZE, workers),
            ("torch", "torchvision"),
            is_in_process=False,
        )
        contenders = [*pipelines(training, folder=str(folder), num_threads=threads), loader]
        speed[threads] = compare(f"ResNet-50 training, {threads} thread{'s' * (threads > 1)}", contenders, options)
    if "dalify" in speed[1]:
        print(f"two threads are {speed[2]['dalify'] / speed[1]['dalify']:.2f} times one")
