"""Gaudi's description of its loader for PyTorch's ResNet, as published: what it leaves out stands between the two lines.

The imports are those of Gaudi's own packages: a test lends their names to dalify. `resnet_media_pipe` is this module.
"""

import os
from enum import Enum

import numpy as np
import torch.utils.data
from habana_frameworks.mediapipe import fn
from habana_frameworks.mediapipe.media_types import dtype as dt
from habana_frameworks.mediapipe.media_types import imgtype, randomCropType
from habana_frameworks.mediapipe.mediapipe import MediaPipe
from habana_frameworks.mediapipe.operators.cpu_nodes.cpu_nodes import media_function

size = 24


# --- not in the document: "API functions are first defined in the ResnetMediaPipe constructor"
class random_flip_func(media_function):
    def __init__(self, params):
        self.np_shape = params['shape'][::-1]
        self.np_dtype = params['dtype']
        self.rng = np.random.default_rng(params['seed'])

    def __call__(self):
        return np.array(self.rng.choice([0, 1], p=[0.5, 0.5], size=self.np_shape), dtype=self.np_dtype)


class DataLoaderType(Enum):
    Python = 0
    Aeon = 1
    MediaAPI = 2


class ResnetMediaPipe(MediaPipe):
    def __init__(self, is_training=False, root="", batch_size=1, shuffle=False, drop_last=True, queue_depth=1,
                 num_instances=1, instance_id=0, device=None):
        super().__init__(device=device, prefetch_depth=queue_depth, batch_size=batch_size, pipe_name="resnet")
        self.is_training = is_training
        self.input = fn.ReadImageDatasetFromDir(shuffle=shuffle, dir=root, format="JPEG", seed=7,
                                                num_slices=num_instances, slice_index=instance_id,
                                                drop_remainder=drop_last, label_dtype=dt.UINT32)
        crop = randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP if is_training else randomCropType.NO_RANDOM_CROP
        self.decode = fn.ImageDecoder(output_format=imgtype.RGB_P, resize=[size, size], random_crop_type=crop, seed=7)
        self.random_flip_input = fn.MediaFunc(func=random_flip_func, shape=[batch_size], dtype=dt.UINT8, seed=7)
        self.random_flip = fn.RandomFlip(horizontal=1)
        mean = np.array([0.485 * 255, 0.456 * 255, 0.406 * 255], dtype=np.float32)
        std = np.array([1 / (0.229 * 255), 1 / (0.224 * 255), 1 / (0.225 * 255)], dtype=np.float32)
        self.norm_mean = fn.MediaConst(data=mean, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.norm_std = fn.MediaConst(data=std, shape=[1, 1, 3], dtype=dt.FLOAT32)
        self.cmn = fn.CropMirrorNorm(crop_w=size, crop_h=size, crop_d=0, dtype=dt.FLOAT32)
# --- end of it

    def definegraph(self):
        jpegs, data = self.input()
        images = self.decode(jpegs)

        if self.is_training == True:
            flip = self.random_flip_input()
            images = self.random_flip(images, flip)

        mean = self.norm_mean()
        std = self.norm_std()
        images = self.cmn(images, mean, std)

        return images, data


class MediaApiDataLoader(torch.utils.data.DataLoader):
    def __init__(self, dataset, sampler, batch_size, num_workers, pin_memory=True, pin_memory_device=None, is_training=False):

        # setting parameters here, code removed for clarity
        # --- not in the document
        self.dataset = dataset
        self.sampler = sampler
        root = dataset.root
        self.shuffle = isinstance(sampler, torch.utils.data.RandomSampler)
        queue_depth, num_instances, instance_id, device_string = 3, 1, 0, 'legacy'
        # --- end of it

        from resnet_media_pipe import ResnetMediaPipe
        pipeline = ResnetMediaPipe(is_training=is_training, root=root, batch_size=batch_size,
                                   shuffle=self.shuffle, drop_last=False, queue_depth=queue_depth,
                                   num_instances=num_instances, instance_id=instance_id, device=device_string)

        from habana_frameworks.mediapipe.plugins.iterator_pytorch import HPUResnetPytorchIterator
        self.iterator = HPUResnetPytorchIterator(mediapipe=pipeline)
        print("Running with Media API DataLoader")

    # --- not in the document
    def __len__(self):
        return len(self.iterator)

    def __iter__(self):
        return iter(self.iterator)


def choose_data_loader(dl_worker_type):
    return DataLoaderType.MediaAPI if dl_worker_type == "HABANA" else DataLoaderType.Python
# --- end of it


def build_data_loader(is_training, dl_worker_type, **kwargs):
    data_loader_type = choose_data_loader(dl_worker_type)
    use_fallback = False

    try:
        if data_loader_type == DataLoaderType.MediaAPI:
            return MediaApiDataLoader(**kwargs, is_training=is_training)
        elif data_loader_type == DataLoaderType.Aeon:
            return AeonDataLoader(**kwargs)
    except Exception as e:
        if os.getenv('DATALOADER_FALLBACK_EN', "True") == "True":
            print(f"Failed to initialize Habana Dataloader, error: {str(e)}\nRunning with PyTorch Dataloader")
            # --- not in the document
            return torch.utils.data.DataLoader(**kwargs)
            # --- end of it
            print(f"Habana dataloader configuration failed: {e}")

    if data_loader_type == DataLoaderType.Python:
        raise ValueError(f"Unknown data_loader_type {data_loader_type}")
