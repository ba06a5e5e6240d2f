"""The calls of decoders on devices, with substitutes for the parts that need a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from dalify import fn, pipeline_def
from dalify.base.errors import DeviceError, MissingPackageError
from dalify.codecs import device_jpeg, nvimagecodec, torchvision_jpeg
from dalify.codecs.device_jpeg import chosen_decoder, open_decoder
from dalify.codecs.device_options import DeviceOptions
from dalify.data.decoded_counts import DecodedCounts
from dalify.data.dtypes import DALIImageType

FILES = [np.arange(10, dtype=np.uint8), np.arange(12, dtype=np.uint8)]


@pytest.fixture(autouse=True)
def _forget() -> None:
    """Clear decoders and the reasons against them, which are cached for the whole process."""
    device_jpeg._why_not.cache_clear()
    device_jpeg._opened.cache_clear()


@pytest.fixture
def real() -> ModuleType:
    return pytest.importorskip(
        "nvidia.nvimgcodec", reason="nvImageCodec is not installed: pip install 'dalify[cuda12]'"
    )


class Decoder:
    """Records the calls of nvImageCodec's decoder; images have shape [2, 3, 3], and contain the number of the file."""

    made: list[Decoder]

    def __init__(
        self, device_id: int = -1, max_num_cpu_threads: int = 0, backends: Any = None, options: str = ""
    ) -> None:
        self.device_id, self.backends, self.options = device_id, backends, options
        self.calls: list[tuple[list[Any], Any, int]] = []
        Decoder.made.append(self)

    def decode(
        self, srcs: Sequence[Any], *, images: Any = None, params: Any = None, cuda_stream: int = 0
    ) -> list[DecodedImage]:
        self.calls.append((list(srcs), params, cuda_stream))
        return [DecodedImage(number) for number in range(len(srcs))]


class DecodedImage:
    """An image on the device, exported by DLPack for a stream."""

    streams: ClassVar[list[int]] = []

    def __init__(self, value: int) -> None:
        self.tensor = torch.full((2, 3, 3), value, dtype=torch.uint8)

    def __dlpack__(self, stream: Any = None) -> Any:
        DecodedImage.streams.append(stream)
        return self.tensor.__dlpack__()


class CodeStream:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array, self.region = array, None
        if not len(array):
            raise RuntimeError("Failed to get image info")

    def get_sub_code_stream(self, image_idx: int = 0, region: Any = None) -> CodeStream:
        part = CodeStream(self.array)
        part.region = region
        return part


@pytest.fixture
def codec(real: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """NvImageCodec with another decoder, on a GPU that does not exist."""
    for ours, theirs in ((Decoder, real.Decoder), (CodeStream, real.CodeStream)):
        text = f"{theirs.__init__.__doc__} {getattr(theirs, 'decode', theirs).__doc__}"
        text += str(getattr(theirs, "get_sub_code_stream", theirs).__doc__)
        for method in (
            getattr(ours, name) for name in ("__init__", "decode", "get_sub_code_stream") if hasattr(ours, name)
        ):
            names = method.__code__.co_varnames[1 : method.__code__.co_argcount + method.__code__.co_kwonlyargcount]
            assert all(name in text for name in names)
    Decoder.made = []
    DecodedImage.streams.clear()
    parts = {name: value for name, value in vars(real).items() if not name.startswith("__")}
    fake = SimpleNamespace(**{**parts, "Decoder": Decoder, "CodeStream": CodeStream})
    monkeypatch.setattr(nvimagecodec, "require", lambda _package: fake)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: SimpleNamespace(cuda_stream=77))


@pytest.mark.usefixtures("codec")
def test_options_reach_nvimagecodec(real: ModuleType) -> None:
    kinds = real.BackendKind
    nvimagecodec.NvImageCodecDecoder("cuda", DeviceOptions(1234, 0.25, 640, 480, 11, 12))
    nvimagecodec.NvImageCodecDecoder("cuda:1", DeviceOptions(hw_decoder_load=0.0))
    first, second = Decoder.made
    assert (first.device_id, second.device_id) == (3, 1)
    assert [backend.backend_kind for backend in first.backends] == [
        kinds.HW_GPU_ONLY,
        kinds.GPU_ONLY,
        kinds.HYBRID_CPU_GPU,
    ]
    assert first.backends[0].load_hint == 0.25
    assert first.backends[0].load_hint_policy == real.LoadHintPolicy.FIXED
    assert [backend.backend_kind for backend in second.backends] == [kinds.GPU_ONLY, kinds.HYBRID_CPU_GPU]
    assert set(first.options.split()) == {
        ":fancy_upsampling=1",
        "nvjpeg_cuda_decoder:hybrid_huffman_threshold=1234",
        "nvjpeg_cuda_decoder:device_memory_padding=11",
        "nvjpeg_cuda_decoder:host_memory_padding=12",
        "nvjpeg_hw_decoder:preallocate_width_hint=640",
        "nvjpeg_hw_decoder:preallocate_height_hint=480",
    }
    assert "nvjpeg_hw_decoder" not in second.options


@pytest.mark.usefixtures("codec")
@pytest.mark.parametrize("color", device_jpeg.COLORS)
@pytest.mark.parametrize("adjust_orientation", [False, True])
def test_a_chunk_is_one_call_on_the_current_stream(color: DALIImageType, adjust_orientation: bool) -> None:
    decoder = nvimagecodec.NvImageCodecDecoder("cuda", DeviceOptions())
    files = [FILES[0], np.empty(0, np.uint8), FILES[1]]
    windows = np.array([[1, 2, 30, 40], [0, 0, 1, 1], [5, 6, 7, 8]])
    found = decoder.decode(files, color, windows, adjust_orientation=adjust_orientation)
    ((streams, parameters, stream),) = Decoder.made[0].calls
    assert stream == 77
    assert [(list(item.region.start), list(item.region.end)) for item in streams] == [
        ([1, 2], [31, 42]),
        ([5, 6], [12, 14]),
    ]
    assert parameters.apply_exif_orientation == adjust_orientation
    assert parameters.sample_format.name == {"RGB": "I_RGB", "BGR": "I_BGR", "GRAY": "I_Y"}[color.name]
    assert found[1] is None  # a header that cannot be parsed
    assert DecodedImage.streams == [77, 77]
    assert [int(image.max()) for image in (found[0], found[2]) if image is not None] == [0, 1]


@pytest.mark.usefixtures("codec")
def test_the_default_stream_equals_that_of_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """DLPack numbers CUDA's default stream 1; nvImageCodec and torch number it 0."""
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: SimpleNamespace(cuda_stream=0))
    decoder = nvimagecodec.NvImageCodecDecoder("cuda", DeviceOptions())
    decoder.decode(FILES[:1], DALIImageType.RGB, None, adjust_orientation=True)
    assert [stream for _, _, stream in Decoder.made[0].calls] == [0]
    assert DecodedImage.streams == [1]


@pytest.mark.usefixtures("codec")
def test_files_that_were_parsed_before_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "nvimgcodec")
    monkeypatch.setattr(device_jpeg, "_why_not", lambda *_: None)
    decoder = nvimagecodec.NvImageCodecDecoder("cuda", DeviceOptions())
    files = [FILES[0], np.empty(0, np.uint8), FILES[1]]
    parsed = device_jpeg.parsed_for("cuda", files)
    assert parsed is not None
    monkeypatch.setattr(nvimagecodec, "parsed_streams", None)
    found = decoder.decode(files, DALIImageType.RGB, None, adjust_orientation=True, parsed=parsed)
    ((streams, _, _),) = Decoder.made[0].calls
    assert streams == [parsed[0], parsed[2]]
    assert [None if image is None else int(image.max()) for image in found] == [0, None, 1]


class Stream:
    """A stream of a GPU; notes what it waits for."""

    entered: ClassVar[list[Stream]] = []

    def __init__(self, _device: str) -> None:
        self.waits: list[Any] = []

    def wait_stream(self, other: Stream) -> None:
        self.waits.append(other)

    def __enter__(self) -> None:
        Stream.entered.append(self)

    def __exit__(self, *_: object) -> None:
        Stream.entered.pop()


def fake_torchvision(monkeypatch: pytest.MonkeyPatch, decode: Any) -> tuple[Stream, list[Any]]:
    """Replace torchvision, whose decoder needs a GPU; return the pipeline's stream, and the streams of the images."""
    current, marked = Stream("cuda"), list[Any]()
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: current)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda _image, stream: marked.append(stream))
    modes = SimpleNamespace(RGB="RGB", GRAY="GRAY", UNCHANGED="UNCHANGED")
    fake = SimpleNamespace(decode_jpeg=decode, ImageReadMode=modes)
    monkeypatch.setattr(torchvision_jpeg, "require", lambda _package: fake)
    return current, marked


def test_torchvision_returns_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    planes = torch.arange(3 * 8 * 9, dtype=torch.uint8).reshape(3, 8, 9)

    def decode_jpeg(
        input: Any, mode: Any = "UNCHANGED", device: Any = "cpu", apply_exif_orientation: bool = False
    ) -> list[Any]:
        calls.append(([data.tolist() for data in input], mode, device))
        return [planes[:1] if mode == "GRAY" else planes for _ in input]

    fake_torchvision(monkeypatch, decode_jpeg)
    decoder = torchvision_jpeg.TorchvisionDecoder("cuda:1", DeviceOptions())
    windows = np.array([[0, 0, 8, 9], [1, 2, 3, 4]])
    wanted = {DALIImageType.RGB: planes, DALIImageType.BGR: planes, DALIImageType.GRAY: planes[:1]}
    assert decoder.returns_planes  # of whole images in RGB: windows and BGR are computed for all images together
    for color, image in wanted.items():
        for parts in (None, windows):
            for found in decoder.decode(FILES, color, parts, adjust_orientation=True):
                assert found is not None
                np.testing.assert_array_equal(found.numpy(), image)
    assert len(calls) == 6
    assert calls[0] == ([data.tolist() for data in FILES], "RGB", "cuda:1")
    assert not decoder.rotates


def test_torchvision_decodes_on_its_own_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes without waiting for the pipeline's stream, whose memory may be in use when torch allocates it again."""
    seen: list[Stream] = []

    def decode_jpeg(input: Any, **_options: Any) -> list[Any]:
        seen.extend(Stream.entered)
        return [torch.zeros(3, 8, 9, dtype=torch.uint8) for _ in input]

    current, marked = fake_torchvision(monkeypatch, decode_jpeg)
    decoder = torchvision_jpeg.TorchvisionDecoder("cuda", DeviceOptions())
    decoder.decode(FILES, DALIImageType.RGB, None, adjust_orientation=True)
    (own,) = seen
    assert own is not current
    assert current.waits == [own]
    assert marked == [current] * len(FILES)


def test_host_decodes_what_torchvision_fails_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = [RuntimeError("image decoding failed"), torch.OutOfMemoryError("no memory")]

    def decode_jpeg(*_arguments: Any, **_options: Any) -> Any:
        raise failures.pop(0)

    fake_torchvision(monkeypatch, decode_jpeg)
    decoder = torchvision_jpeg.TorchvisionDecoder("cuda", DeviceOptions())
    assert decoder.decode(FILES, DALIImageType.RGB, None, adjust_orientation=True) == [None, None]
    with pytest.raises(torch.OutOfMemoryError):  # the next batch may fit
        decoder.decode(FILES, DALIImageType.RGB, None, adjust_orientation=True)


class Working:
    """A decoder that decodes the image of the probe."""

    rotates = True
    returns_planes = False

    def __init__(self, device: str, options: DeviceOptions) -> None:
        self.device = device

    def decode(self, files: Sequence[Any], *_arguments: Any, **_options: Any) -> list[Any]:
        return [torch.zeros(16, 24, 3, dtype=torch.uint8) for _ in files]


class TooOld(Working):
    """A library that does not fit the driver."""

    def __init__(self, device: str, options: DeviceOptions) -> None:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version\nand more")


class Missing(Working):
    def __init__(self, device: str, options: DeviceOptions) -> None:
        raise MissingPackageError(
            "decoding on the GPU needs a package.", hint="Install it with: pip install 'x[cuda12]'"
        )


class Useless(Working):
    def decode(self, files: Sequence[Any], *_arguments: Any, **_options: Any) -> list[Any]:
        return [None for _ in files]


@pytest.mark.parametrize(
    ("first", "second", "key", "text"),
    [
        (Working, Working, "nvimgcodec", "nvImageCodec"),
        (
            TooOld,
            Working,
            "torchvision",
            "torchvision; nvImageCodec: CUDA driver version is insufficient for CUDA runtime version",
        ),
        (
            Missing,
            Useless,
            None,
            "nvImageCodec: decoding on the GPU needs a package. Install it with: pip install 'x[cuda12]'; "
            "torchvision: it does not decode a test image",
        ),
    ],
)
def test_first_decoder_that_works_is_used(
    first: Any, second: Any, key: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    kinds = {"nvimgcodec": ("nvImageCodec", first), "torchvision": ("torchvision", second)}
    monkeypatch.setattr(device_jpeg, "_KINDS", {name: device_jpeg._Kind(*kind) for name, kind in kinds.items()})
    assert chosen_decoder("cuda") == (key, text)
    opened = open_decoder("cuda:0", DeviceOptions())
    assert type(opened) is {None: type(None), "nvimgcodec": first, "torchvision": second}[key]
    assert opened is open_decoder("cuda:0", DeviceOptions())
    for device in ("mps", "xpu"):
        assert chosen_decoder(device) == (None, "no CUDA device")
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "torchvision")
    assert chosen_decoder("cuda")[0] == (None if second is Useless else "torchvision")


@pytest.fixture
def working(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that works, of which the process has no users."""
    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    monkeypatch.setattr(device_jpeg, "_KINDS", {"nvimgcodec": device_jpeg._Kind("nvImageCodec", Working)})
    monkeypatch.setattr(device_jpeg, "_users", set())


@pytest.mark.usefixtures("working")
def test_decoders_are_closed_with_their_last_user() -> None:
    """They take memory of the device."""
    users = [DecodedCounts(), DecodedCounts()]
    opened = [
        weakref.ref(open_decoder("cuda:0", DeviceOptions(hybrid_huffman_threshold=number), user))
        for number, user in enumerate(users)
    ]
    assert weakref.ref(open_decoder("cuda:0", DeviceOptions(hybrid_huffman_threshold=0), users[1])) == opened[0]
    del users[0]
    assert None not in [decoder() for decoder in opened]
    del users[0]
    assert [decoder() for decoder in opened] == [None, None]


@pytest.mark.usefixtures("working")
def test_decoders_without_users_are_kept_until_the_last_user_ends() -> None:
    user = DecodedCounts()
    opened = weakref.ref(open_decoder("cuda:0", DeviceOptions()))
    open_decoder("cuda:0", DeviceOptions(), user)
    assert opened() is not None
    del user
    assert opened() is None


def test_decoders_are_closed_before_the_program_ends() -> None:
    """Afterwards the driver has ended: a decoder that is freed then can crash the process."""
    program = """
import atexit, sys
atexit.register(lambda: print("ended"))  # called last
from dalify.codecs import device_jpeg
from dalify.codecs.device_options import DeviceOptions
from dalify.data.decoded_counts import DecodedCounts

class Decoder:
    def __init__(self, *_): ...
    def __del__(self):
        print("closed", sys.is_finalizing())

device_jpeg._KINDS = {"nvimgcodec": device_jpeg._Kind("", Decoder)}
device_jpeg._why_not = lambda *_: None
user = DecodedCounts()
device_jpeg.open_decoder("cuda:0", DeviceOptions(), user)
"""
    environment = {**os.environ, "DALIFY_DEVICE_DECODER": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.stdout.split("\n"), done.stderr) == (["closed False", "ended", ""], "")


@pytest.mark.parametrize(("number", "device"), [(1, "cuda:1"), (0, "cuda:0"), (None, "cuda"), (7, "cuda")])
def test_the_decoder_is_tried_out_on_the_device_of_the_pipeline(
    number: int | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process of a training with several GPUs would otherwise take memory of the first one."""
    tried: list[str] = []

    class Noted(Working):
        def __init__(self, device: str, options: DeviceOptions) -> None:
            tried.append(device)

    @pipeline_def(batch_size=2, num_threads=1, device_id=number)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(lambda: FILES), device="mixed")

    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    monkeypatch.setenv("DALIFY_DEVICE", "cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(device_jpeg, "_KINDS", {"nvimgcodec": device_jpeg._Kind("nvImageCodec", Noted)})
    pipe = pipeline()
    if torch.cuda.is_available():
        pytest.skip("the pipeline is not meant to run")
    with pytest.raises(DeviceError, match=r"cannot be used|does not exist"):
        pipe.build()
    assert tried == [device]
