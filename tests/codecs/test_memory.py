"""Peak memory of decoding per pixel, without the result, measured in child processes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.helpers.platforms import needs_linux

_RESULT_BYTES = 3
# Format and options of Pillow -> most bytes per pixel besides the result of 3: what the library holds, 4 of Pillow, and
# the file where it has to be copied. JPEG 2000 holds all samples as integers of 32 bits, WebP two canvases of 4 bytes
# where it may be animated.
MAX_BYTES = {
    "JPEG": 0.5,
    "JPEG progressive": 3.5,
    "JPEG CMYK": 4.5,
    "JPEG rotated": 3.5,
    "JPEG float": 12.5,
    "JPEG YCbCr": 4.5,
    "PNG": 6.0,
    "PNG palette": 6.5,
    "PNG deep": 2.5,
    "GIF": 6.5,
    "WEBP": 8.5,
    "TIFF": 8.5,
    "BMP": 6.8,
    "PPM": 0.5,
    "JPEG2000": 16.0,
}

MEASURE = """
import io, json, os, resource, sys
import cv2
import numpy as np
from PIL import Image
from dalify.codecs.image import decode_image, image_shape
from dalify.data.dtypes import DALIDataType, DALIImageType
from tests.helpers.photos import encode_image

def made(name, extent):
    kind, _, what = name.partition(" ")
    gradient = Image.radial_gradient("L").resize((extent, extent))
    image = Image.merge("RGB", [gradient, gradient.rotate(90), gradient.rotate(180)])
    if what == "deep":
        return cv2.imencode(".png", np.asarray(image).astype(np.uint16) * 257)[1].tobytes()
    if what == "CMYK":
        image = image.convert("CMYK")
    if what == "palette" or kind == "GIF":
        image = image.quantize(64)
    options = {}
    if what == "progressive":
        options["progressive"] = True
    if what == "rotated":
        options["exif"] = Image.Exif()
        options["exif"][0x0112] = 6
    if kind == "WEBP":
        options["method"] = 0
    return encode_image(image, kind, **options)

def decoded(name, data):
    what = name.partition(" ")[2]
    output_type = DALIImageType.YCbCr if what == "YCbCr" else DALIImageType.RGB
    dtype = DALIDataType.FLOAT if what == "float" else DALIDataType.UINT8
    out = np.empty(image_shape(data, output_type), dtype.numpy)
    decode_image(data, output_type, dtype, out=out)

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10

name = sys.argv[1]
small = made(name, 64)
decoded(name, small)  # all is loaded and compiled
data = made(name, 2048)
reading, writing = os.pipe()
if os.fork() == 0:  # a process whose peak begins with what it uses now
    decoded(name, small)  # pages of libraries are mapped
    before = peak()
    decoded(name, data)
    os.write(writing, json.dumps((peak() - before) / 2048**2).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 99).decode())
"""


@needs_linux
@pytest.mark.parametrize("name", MAX_BYTES)
def test_peak_per_pixel(name: str) -> None:
    command = [sys.executable, "-c", MEASURE, name]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(child.stdout) <= _RESULT_BYTES + MAX_BYTES[name]
