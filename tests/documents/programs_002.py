"""Programs of a 2019 talk on DALI, as shown on its slides; only the import root is another one, and what a slide left out is added.

A test sets `image_dir`, which the programs read as a global.
"""

import dalify.ops as ops
import dalify.types as types
from dalify.pipeline import Pipeline

image_dir = "data/images"


class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id):
        super(SimplePipeline, self).__init__(batch_size, num_threads, device_id)
        self.input = ops.FileReader(file_root = image_dir)
        self.decode = ops.nvJPEGDecoder(device = "mixed", output_type = types.RGB)
        self.resize = ops.Resize(device = "gpu", resize_x = 224, resize_y = 224)

    def define_graph(self):
        jpegs, labels = self.input()
        images = self.decode(jpegs)
        images = self.resize(images)
        return (images, labels)


class DetectionPipeline(Pipeline):
    """The talk's detection steps with another source; `random_bbox_crop` and `bbox_paste` are left out."""

    def __init__(self, batch_size, num_threads, device_id, boxes):
        super(DetectionPipeline, self).__init__(batch_size, num_threads, device_id, seed = 5)
        self.input = ops.FileReader(file_root = image_dir)
        self.boxes = ops.ExternalSource(source = boxes, batch = False)
        self.decode = ops.ImageDecoder(device = "cpu", output_type = types.RGB)
        self.paste = ops.Paste(device = "cpu", fill_value = (10, 20, 30))
        self.slice = ops.Slice(device = "cpu")
        self.flip = ops.Flip(device = "cpu")
        self.bbflip = ops.BbFlip(device = "cpu", ltrb = True)
        self.coin = ops.CoinFlip(probability = 0.5)
        self.ratio = ops.Uniform(range = (1.0, 2.0))
        self.position = ops.Uniform(range = (0.0, 1.0))

    def define_graph(self):
        jpegs, labels = self.input()
        bboxes = self.boxes()
        images = self.decode(jpegs)
        rng, rng2 = self.coin(), self.coin()
        px, py, ratio = self.position(), self.position(), self.ratio()
        images = self.paste(images, paste_x = px, paste_y = py, ratio = ratio)
        images = self.slice(images, self.crop_begin(), self.crop_size())
        images = self.flip(images, horizontal = rng, vertical = rng2)
        bboxes = self.bbflip(bboxes, horizontal = rng, vertical = rng2)
        return (images, bboxes, labels)

    def crop_begin(self):
        return types.Constant([0.1, 0.2], dtype = types.FLOAT)

    def crop_size(self):
        return types.Constant([0.5, 0.5], dtype = types.FLOAT)


class TakeFirst(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, source):
        super(TakeFirst, self).__init__(batch_size, num_threads, device_id)
        self.input = ops.ExternalSource(source = source, batch = False)
        self.takeFirst = ops.ElementExtract(element_map = [0])

    def define_graph(self):
        flow = self.input()
        first = self.takeFirst(flow)
        return first, flow
