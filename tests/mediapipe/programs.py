"""Programs in the manner of those published for Gaudi's MediaPipe; the root of their imports is `dalify.mediapipe`."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from dalify.mediapipe import fn
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.media_types import ftype, imgtype, randomCropType, readerOutType
from dalify.mediapipe.mediapipe import MediaPipe
from dalify.mediapipe.operators.cpu_nodes.cpu_nodes import media_function
from dalify.mediapipe.operators.reader_nodes.reader_nodes import (
    media_ext_reader_op_impl,
    media_ext_reader_op_tensor_info,
)
from dalify.mediapipe.plugins.iterator_pytorch import HPUGenericPytorchIterator

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
INVERSE_STD = np.array([1 / 58.395, 1 / 57.12, 1 / 57.375], np.float32)


class RandomFlipFunction(media_function):
    def __init__(self, params: dict[str, Any]) -> None:
        self.np_shape = params["shape"][::-1]
        self.np_dtype = params["dtype"]
        self.rng = np.random.default_rng(params["seed"])

    def __call__(self) -> np.ndarray:
        return np.array(self.rng.choice([0, 1], p=[0.5, 0.5], size=self.np_shape), dtype=self.np_dtype)


class ResnetPipe(MediaPipe):
    """Program 1: a reader in slices, decoding with a random crop, flips drawn by a Python class, normalization."""

    def __init__(
        self,
        root: str,
        *,
        is_training: bool,
        batch_size: int,
        shuffle: bool,
        num_instances: int = 1,
        instance_id: int = 0,
        drop_last: bool = False,
        device: str = "legacy",
    ) -> None:
        super().__init__(device=device, batch_size=batch_size, prefetch_depth=3, pipe_name=self.__class__.__name__)
        self.is_training = is_training
        self.input = fn.ReadImageDatasetFromDir(
            shuffle=shuffle,
            dir=root,
            format="JPEG",
            seed=5,
            num_slices=num_instances,
            slice_index=instance_id,
            drop_remainder=drop_last,
        )
        size = 24 if is_training else 30
        crop = randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP if is_training else randomCropType.NO_RANDOM_CROP
        self.decode = fn.ImageDecoder(
            device="hpu",
            output_format=imgtype.RGB_P,
            random_crop_type=crop,
            resize=[size, size],
            resampling_mode=ftype.BI_LINEAR,
            scale_min=0.08,
            scale_max=1.0,
            ratio_min=3 / 4,
            ratio_max=4 / 3,
            seed=7,
        )
        self.random_flip_input = fn.MediaFunc(func=RandomFlipFunction, shape=[batch_size], dtype=dt.UINT8, seed=3)
        self.random_flip = fn.RandomFlip(horizontal=1, device="hpu")
        self.norm_mean = fn.MediaConst(data=MEAN, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.norm_std = fn.MediaConst(data=INVERSE_STD, shape=[1, 1, 3], dtype=dt.FLOAT32)
        place = 0.0 if is_training else 0.5
        self.cmn = fn.CropMirrorNorm(
            crop_w=24, crop_h=24, crop_pos_x=place, crop_pos_y=place, crop_d=0, dtype=dt.FLOAT32, device="hpu"
        )

    def definegraph(self) -> Any:
        jpegs, data = self.input()
        images = self.decode(jpegs)
        if self.is_training:
            flip = self.random_flip_input()
            images = self.random_flip(images, flip)
        mean = self.norm_mean()
        std = self.norm_std()
        images = self.cmn(images, mean, std)
        return images, data

    def __del__(self) -> None:
        super().__del__()


class NewResnetPipe(MediaPipe):
    """Program 2: the crop window and the coin are separate operators; device "mixed"."""

    def __init__(self, root: str, batch_size: int) -> None:
        super().__init__("mixed", 2, batch_size, 6, "resnet")
        self.input = fn.ReadImageDatasetFromDir(
            shuffle=False, dir=root, format="jpg", label_dtype=dt.INT32, device="cpu"
        )
        self.window = fn.CropWindowGen(
            resize_width=24,
            resize_height=24,
            type=randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP,
            seed=11,
            device="cpu",
        )
        self.decode = fn.ImageDecoder(output_format=imgtype.RGB_P, resize=[24, 24], device="hpu")
        self.probability = fn.Constant(constant=0.5, dtype=dt.FLOAT32, device="cpu")
        self.coin = fn.CoinFlip(seed=100, device="cpu")
        self.as_vector = fn.Reshape(size=[batch_size], tensorDim=1, layout="", dtype=dt.UINT8, device="hpu")
        self.flip = fn.RandomFlip(horizontal=1, device="hpu")
        self.norm_mean = fn.MediaConst(data=MEAN, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.norm_std = fn.MediaConst(data=INVERSE_STD, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.cmn = fn.CropMirrorNorm(crop_w=24, crop_h=24, dtype=dt.FLOAT32, device="hpu")
        self.labels = fn.Reshape(size=[batch_size], tensorDim=1, layout="", dtype=dt.INT32)

    def definegraph(self) -> Any:
        jpegs, labels = self.input()
        window = self.window(jpegs)
        images = self.decode(jpegs, window)
        flips = self.as_vector(self.coin(self.probability()))
        images = self.flip(images, flips)
        images = self.cmn(images, self.norm_mean(), self.norm_std())
        return images, self.labels(labels), window, flips


class TensorFlowPipe(MediaPipe):
    """Program 3: center crop, arithmetic and a transposition in place of a fused operator; bfloat16."""

    def __init__(self, root: str, batch_size: int) -> None:
        super().__init__(device="hpu", prefetch_depth=2, batch_size=batch_size, pipe_name="tf")
        self.input = fn.ReadImageDatasetFromDir(shuffle=False, dir=root, format="JPEG")
        self.decode = fn.ImageDecoder(
            output_format=imgtype.RGB_P, resize=[32, 32], random_crop_type=randomCropType.CENTER_CROP
        )
        self.crop = fn.Crop(crop_w=24, crop_h=24, crop_pos_x=0.5, crop_pos_y=0.5)
        self.to_float = fn.Cast(dtype=dt.FLOAT32)
        self.mean = fn.MediaConst(data=MEAN, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.sub = fn.Sub(dtype=dt.FLOAT32)
        self.to_bfloat16 = fn.Cast(dtype=dt.BFLOAT16)
        self.transpose = fn.Transpose(permutation=[2, 0, 1, 3], tensorDim=4, dtype=dt.BFLOAT16)
        self.set_repeat_count(-1)

    def definegraph(self) -> Any:
        jpegs, labels = self.input()
        images = self.to_float(self.crop(self.decode(jpegs)))
        return self.transpose(self.to_bfloat16(self.sub(images, self.mean()))), labels


class CocoPipe(MediaPipe):
    """Program 4: operators made in `definegraph`; the last batch has the number of its valid images."""

    def __init__(self, root: str, annotations: str, batch_size: int) -> None:
        super().__init__("legacy", 2, batch_size, "coco")
        self.root, self.annotations = root, annotations

    def definegraph(self) -> Any:
        reader = fn.CocoReader(
            root=self.root, annfile=self.annotations, shuffle=False, pad_remainder=True, partial_batch=True
        )
        jpegs, ids, sizes, boxes, labels, lengths, batch = reader()
        images = fn.ImageDecoder(output_format=imgtype.RGB_P, resize=[40, 40])(jpegs)
        images = fn.ColorSpaceConversion(colorSpaceMode=1)(images)
        return images, ids, sizes, boxes, labels, lengths, batch


class CocoIterator(HPUGenericPytorchIterator):
    def __next__(self) -> Any:
        outputs = self.pipe.run()
        images = self.proxy_device.get_tensor(outputs[0].dev_addr)
        real = int(outputs[6].as_cpu().as_nparray()[0])
        ids = outputs[1].as_cpu().as_nparray()[:real]
        return images, ids, outputs[3].as_cpu().as_nparray()[:real]


class SsdPipe(MediaPipe):
    """Program 9, of the documents: windows that keep boxes, mirrors of images and boxes, anchors."""

    def __init__(self, root: str, annotations: str, batch_size: int) -> None:
        super().__init__(device="mixed", prefetch_depth=3, batch_size=batch_size, num_threads=2, pipe_name="ssd")
        self.input = fn.CocoReader(root=root, annfile=annotations, shuffle=False, drop_remainder=True, device="cpu")
        self.half = fn.Constant(constant=0.5, dtype=dt.FLOAT32)
        self.coin = fn.CoinFlip(seed=2, device="cpu")
        self.crop = fn.SSDCropWindowGen(seed=3, device="cpu")
        self.flip_boxes = fn.SSDBBoxFlip(device="cpu")
        self.encode = fn.SSDEncode(device="cpu")
        self.decode = fn.ImageDecoder(output_format=imgtype.RGB_P, resize=[300, 300], device="hpu")
        self.flip = fn.RandomFlip(horizontal=1, device="hpu")
        self.to_float = fn.Cast(dtype=dt.FLOAT32)

    def definegraph(self) -> Any:
        jpegs, ids, sizes, boxes, labels, lengths, _ = self.input()
        boxes, labels, lengths, windows = self.crop(sizes, boxes, labels, lengths)
        flips = self.coin(self.half())
        boxes = self.flip_boxes(flips, boxes, lengths)
        boxes, labels = self.encode(boxes, labels, lengths)
        images = self.to_float(self.flip(self.decode(jpegs, windows), flips))
        return images, ids, sizes, boxes, labels, lengths, windows, flips


class ClipReader(media_ext_reader_op_impl):
    """Yields paths and token arrays, in the order of a sampler of the user's."""

    def __init__(self, params: dict[str, Any], fw_params: Any) -> None:
        private = params["priv_params"]
        self.dataset, self.sampler = private["dataset"], private["sampler"]
        self.batch_size = fw_params.batch_size
        self.epoch = 0

    def __iter__(self) -> ClipReader:
        self.sampler.set_epoch(self.epoch)
        self.epoch += 1
        self.iterator = iter(list(self.sampler))
        return self

    def __next__(self) -> Any:
        indices = [next(self.iterator) for _ in range(self.batch_size)]
        rows = [self.dataset[index] for index in indices]
        return [row[0] for row in rows], *(np.stack([row[1 + part] for row in rows]) for part in range(2))

    def __len__(self) -> int:
        return len(self.sampler) // self.batch_size

    def get_media_output_type(self) -> int:
        return readerOutType.FILE_LIST

    def get_largest_file(self) -> str:
        return self.dataset[0][0]

    def gen_output_info(self) -> Any:
        return [
            media_ext_reader_op_tensor_info(dt.NDT, np.array([self.batch_size], dtype=np.uint32), ""),
            media_ext_reader_op_tensor_info(dt.INT32, np.array([5, self.batch_size], dtype=np.uint32), ""),
            media_ext_reader_op_tensor_info(dt.FLOAT32, np.array([2, 3, self.batch_size], dtype=np.uint32), ""),
        ]


class ClipPipe(MediaPipe):
    """Programs 5 and 6: an external reader with several outputs; a constant is called before the graph is defined."""

    def __init__(self, dataset: Any, sampler: Any, batch_size: int) -> None:
        super().__init__(device="hpu:0", batch_size=batch_size, prefetch_depth=5, pipe_name="clip")
        self.input = fn.MediaExtReaderOp(
            impl=ClipReader, num_outputs=3, seed=0, priv_params={"dataset": dataset, "sampler": sampler}
        )
        self.decode = fn.ImageDecoder(
            output_format=imgtype.RGB_P,
            resize=[24, 24],
            resampling_mode=ftype.BICUBIC,
            random_crop_type=randomCropType.CENTER_CROP,
        )
        mean = fn.MediaConst(data=MEAN, shape=[1, 1, 3], dtype=dt.FLOAT32)
        std = fn.MediaConst(data=INVERSE_STD, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.constants = mean(), std()
        self.cmn = fn.CropMirrorNorm(crop_w=24, crop_h=24, dtype=dt.FLOAT32)

    def definegraph(self) -> Any:
        jpegs, tokens, embeddings = self.input()
        return self.cmn(self.decode(jpegs), *self.constants), tokens, embeddings


class UnetPipe(MediaPipe):
    """Program 7: volumes from NumPy files, crops that prefer objects, zoom, flips, noise, blur."""

    def __init__(self, images: list[str], labels: list[str], batch_size: int, *, is_training: bool) -> None:
        super().__init__(device="mixed", batch_size=batch_size, prefetch_depth=1, num_threads=2, pipe_name="unet")
        self.is_training = is_training
        self.input = fn.ReadNumpyDatasetFromDir(
            num_outputs=2, shuffle=False, file_list=[images, labels], dtype=[dt.FLOAT32, dt.UINT8], dense=False
        )
        self.crop = fn.RandomBiasedCrop(patch_size=[8, 10, 6], over_sampling=0.5, seed=4)
        self.sizes = fn.MediaConst(data=np.array([4, 8, 6]), shape=[3], dtype=dt.INT32)
        self.zoom = fn.Zoom(patch_size=[8, 10, 6])
        self.half = fn.Constant(constant=0.5, dtype=dt.FLOAT32)
        self.coins = [fn.CoinFlip(seed=seed) for seed in (1, 2, 3)]
        self.flips = [fn.RandomFlip(horizontal=1), fn.RandomFlip(vertical=1), fn.RandomFlip(depthwise=1)]
        self.deviation = fn.RandomUniform(low=0.0, high=0.1, seed=9)
        self.noise = fn.RandomNormal(mean=0.0, shape=[8, 10, 6, 1, batch_size], dims=5, seed=10)
        self.add = fn.Add()
        self.sigmas = fn.RandomUniform(low=0.5, high=1.5, seed=12)
        self.blur = fn.GaussianBlur(minSigma=0.5, maxSigma=1.5)
        self.scale = fn.RandomUniform(low=0.7, high=1.3, seed=13)
        self.mult = fn.Mult()

    def definegraph(self) -> Any:
        image, label = self.input()
        if not self.is_training:
            return image, label
        image, label = self.crop(image, label)
        image, label = self.zoom(image, label, self.sizes())
        for coin, flip in zip(self.coins, self.flips, strict=True):
            chosen = coin(self.half())
            image, label = flip(image, chosen), flip(label, chosen)
        image = self.add(image, self.noise(self.deviation()))
        image = self.blur(image, self.sigmas())
        return self.mult(image, self.scale()), label


class QueueReader(media_ext_reader_op_impl):
    """Gives what another thread has put into a queue; it takes one argument, as readers of old did."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.queue: SimpleQueue[Any] = params["priv_params"]["queue"]

    def __iter__(self) -> QueueReader:
        return self

    def __next__(self) -> Any:
        files = self.queue.get()
        if files is None:
            raise StopIteration
        return [np.frombuffer(each + b"\0" * (-len(each) % 64), np.uint8) for each in files]

    def __len__(self) -> int:
        return 1

    def get_media_output_type(self) -> int:
        return readerOutType.BUFFER_LIST


class QueuePipe(MediaPipe):
    """Program 8: no prefetching; the reader is fed by a queue."""

    def __init__(self, queue: Any, batch_size: int, height: int, width: int) -> None:
        super().__init__("legacy", 0, batch_size, 1, "queue")
        self.reader = fn.MediaExtReaderOp(impl=QueueReader, num_outputs=1, priv_params={"queue": queue})
        self.decode = fn.ImageDecoder(output_format=imgtype.RGB_I, resize=[width, height])
        self.transpose = fn.Transpose(permutation=[1, 2, 0, 3])

    def definegraph(self) -> Any:
        return self.transpose(self.decode(self.reader()))


def as_tensor(output: Any) -> torch.Tensor:
    return torch.from_numpy(output.as_cpu().as_nparray())
