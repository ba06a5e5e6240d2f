"""Readers of folders and files, and custom readers: order, slices, and damaged files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DalifyError,
    DecodeError,
    ReaderError,
    SourceError,
    UnknownArgumentError,
)
from dalify.mediapipe import fn
from dalify.mediapipe.backend.nodes import opnode_tensor_info
from dalify.mediapipe.backend.operator_specs import schema
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.media_types import imgtype, readerOutType
from dalify.mediapipe.operators.media_nodes import MediaReaderNode
from tests.mediapipe.graphs import BATCH, Graph, run

COUNT = 9


@pytest.fixture
def arrays(tmp_path: Path) -> list[np.ndarray]:
    """Volumes x_0 …, packed, and numbers y_0 …, not packed."""
    found = [np.arange(24.0, dtype=np.float32).reshape(1, 2, 3, 4) + index for index in range(COUNT)]
    for index, array in enumerate(found):
        np.savez(tmp_path / f"x_{index}.npz", array)
        np.save(tmp_path / f"y_{index}.npy", np.array([index], np.int32))
    return found


def test_packed_files(arrays: list[np.ndarray], tmp_path: Path) -> None:
    def make() -> Any:
        reader = fn.ReadNumpyDatasetFromDir(
            dir=str(tmp_path),
            pattern=["x_*.npz", "y_*.npy"],
            num_outputs=2,
            dtype=[dt.FLOAT32, dt.INT32],
            shuffle=False,
        )
        volume, number = reader()
        return fn.BasicCrop(patch_size=[2, 3, 1], center_crop=False)(volume), number

    for place, (volumes, numbers) in enumerate(Graph(make)):
        expected = np.stack(arrays[place * BATCH : (place + 1) * BATCH])[:, :, :1, :, :2]
        np.testing.assert_array_equal(volumes.as_nparray(), expected)
        assert numbers.as_nparray().ravel().tolist() == list(range(place * BATCH, (place + 1) * BATCH))


def test_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = ["x_2²3", "x_2²10", "x_10²1"]
    for number, name in enumerate(names):
        np.save(tmp_path / f"{name}.npy", np.array([number], np.int32))

    def make() -> Any:
        return fn.ReadNumpyDatasetFromDir(dir=str(tmp_path), pattern="*.npy", dtype=dt.INT32, shuffle=False)()

    assert run(make)[0].ravel().tolist() == [0, 1, 2]


def test_packed_files_hold_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "x_0.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(ReaderError, match="must contain one array; it has 2"):
        run(lambda: fn.ReadNumpyDatasetFromDir(dir=str(tmp_path), pattern="x_*.npz")())


def test_slices_may_be_sliced_again(arrays: list[np.ndarray], tmp_path: Path) -> None:
    def epochs(slice_index: int, across: bool) -> list[list[int]]:
        def make() -> Any:
            return fn.ReadNumpyDatasetFromDir(
                dir=str(tmp_path), pattern="y_*.npy", dtype=dt.INT32, seed=1, num_slices=3, slice_index=slice_index,
                shuffle_across_dataset=across,
            )()  # fmt: skip

        pipe = Graph(make)
        return [sorted(int(n) for batch in pipe for n in batch[0].as_nparray().ravel()) for _ in range(3)]

    slices = [epochs(index, across=True) for index in range(3)]
    for epoch in range(3):
        assert sorted(number for found in slices for number in found[epoch]) == list(range(COUNT))
    assert slices[0][0] != slices[0][1]
    kept = epochs(0, across=False)
    assert kept[0] == kept[1] == kept[2]


class PairReader(MediaReaderNode):
    """Yields paths and their numbers, as the readers of published programs do."""

    def __init__(
        self, name: str, guid: Any, device: Any, inputs: Any, params: Any, cparams: Any, node_attr: Any
    ) -> None:
        super().__init__(name, guid, device, inputs, params, cparams, node_attr)
        self.files = params["files"]
        self.label_dtype = params["label_dtype"]

    def set_params(self, params: Any) -> None:
        self.batch_size = params.batch_size

    def gen_output_info(self) -> Any:
        shape = np.array([self.batch_size], dtype=np.uint32)
        return [opnode_tensor_info(dt.NDT, shape, ""), opnode_tensor_info(self.label_dtype, shape, "")]

    def get_largest_file(self) -> Any:
        return self.files[0]

    def get_media_output_type(self) -> int:
        return readerOutType.FILE_LIST

    def __len__(self) -> int:
        return len(self.files) // self.batch_size

    def __iter__(self) -> PairReader:
        self.place = 0
        return self

    def __next__(self) -> Any:
        if self.place + self.batch_size > len(self.files):
            raise StopIteration
        numbers = list(range(self.place, self.place + self.batch_size))
        self.place += self.batch_size
        return [self.files[number] for number in numbers], np.array(numbers)


def test_readers_of_programs(photo_list: list[tuple[Path, int]]) -> None:
    params = {"label_dtype": dt.UINT64, "files": None}
    schema.add_operator("PairReader", None, 0, 0, [], 2, params, None, PairReader, dt.NDT)
    assert fn.operator_add("PairReader") is fn.PairReader
    files = [str(path) for path, _ in photo_list]

    def make() -> Any:
        paths, numbers = fn.PairReader(files=files, label_dtype=dt.INT16, device="cpu")()
        return fn.ImageDecoder(resize=[8, 8], output_format=imgtype.RGB_I)(paths), numbers

    batches = list(Graph(make))
    assert [numbers.as_nparray().tolist() for _, numbers in batches] == np.arange(12).reshape(4, BATCH).tolist()
    assert batches[0][0].shape == (BATCH, 8, 8, 3)
    assert batches[0][1].dtype == dt.INT16
    with pytest.raises(UnknownArgumentError, match=r"no argument 'file'. Did you mean 'files'"):
        fn.PairReader(file=files)


def test_mistakes_around_registering() -> None:
    with pytest.raises(ArgumentTypeError, match="derive from MediaReaderNode"):
        schema.add_operator("Odd", None, 0, 0, [], 1, {}, None, dict)
    with pytest.raises(ArgumentValueError, match="not have inputs"):
        schema.add_operator("Odd", None, 1, 1, [], 1, {}, None, PairReader)
    with pytest.raises(ArgumentValueError, match="add_operator first"):
        fn.operator_add("Odd")
    schema.add_operator("Crop", None, 0, 0, [], 2, None, None, PairReader)
    with pytest.raises(ArgumentValueError, match="'Crop' already"):
        fn.operator_add("Crop")


def orders(root: Path, **arguments: Any) -> list[list[int]]:
    """Return the numbers that two epochs of a pipe give."""
    pipe_seed = arguments.pop("pipe_seed", None)
    reader = {"dir": str(root), "pattern": "y_*.npy", "dtype": dt.INT32, **arguments}
    pipe = Graph(lambda: fn.ReadNumpyDatasetFromDir(**reader)(), seed=pipe_seed)
    return [[int(number) for batch in pipe for number in batch[0].as_nparray().ravel()] for _ in range(2)]


def test_the_seed_of_a_pipe_equals_that_of_its_readers(arrays: list[np.ndarray], tmp_path: Path) -> None:
    first = orders(tmp_path, pipe_seed=5)
    assert first == orders(tmp_path, pipe_seed=5)
    assert first != orders(tmp_path, pipe_seed=6)
    assert orders(tmp_path, pipe_seed=5, seed=1) == orders(tmp_path, pipe_seed=6, seed=1)


def test_pipes_with_different_seeds_divide_the_data_consistently(arrays: list[np.ndarray], tmp_path: Path) -> None:
    slices = [orders(tmp_path, pipe_seed=index, num_slices=3, slice_index=index) for index in range(3)]
    for epoch in range(2):
        assert sorted(number for found in slices for number in found[epoch]) == list(range(COUNT))


@pytest.mark.parametrize("broken", ["x_0.npz", "x_1.npz", "y_0.npy", "y_1.npy"])
def test_a_broken_file_is_named(arrays: list[np.ndarray], tmp_path: Path, broken: str) -> None:
    contents = (tmp_path / broken).read_bytes()
    (tmp_path / broken).write_bytes(contents[: len(contents) // 2])
    pattern = f"{broken[0]}_*{broken[-4:]}"
    with pytest.raises(DalifyError, match=f"(?s){broken}.*test_readers.py"):
        run(lambda: fn.ReadNumpyDatasetFromDir(dir=str(tmp_path), pattern=pattern, shuffle=False)())


def test_a_broken_image_is_named(photo_folder: Path, tmp_path: Path) -> None:
    photo = next(photo_folder.rglob("*.jpg"))
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(photo.read_bytes()[:300])

    def make() -> Any:
        files = [str(photo), str(broken), str(photo)]
        reader = fn.ReadImageDatasetFromDir(file_list=files, file_classes=["a"] * 3, shuffle=False)
        return fn.ImageDecoder(resize=[8, 8])(reader()[0])

    with pytest.raises(DecodeError, match=r"sample 1 of the batch, from .*broken\.jpg"):
        run(make)


def reader_of(batch: Any, output_type: int) -> type:
    """Return a reader that returns only the given batch."""

    class Given:
        def __init__(self, params: Any) -> None:
            self.batches = iter([batch])

        def __iter__(self) -> Any:
            return self.batches

        def get_media_output_type(self) -> int:
            return output_type

    return Given


@pytest.mark.parametrize(
    ("batch", "count", "output_type", "text"),
    [
        (None, 1, readerOutType.FILE_LIST, "must be a list of paths; got NoneType"),
        ("a.jpg", 1, readerOutType.FILE_LIST, "must be a list of paths; got str"),
        ([], 1, readerOutType.BUFFER_LIST, "must be a list of files as uint8 arrays; got none"),
        (
            ["a.jpg"],
            1,
            readerOutType.BUFFER_LIST,
            "whose get_media_output_type.* is BUFFER_LIST, is not an array of uint8",
        ),
        (["a.jpg"], 2, readerOutType.FILE_LIST, "returned 1 results, but num_outputs is 2"),
        (7, 2, readerOutType.FILE_LIST, "returned int, but num_outputs is 2"),
        ((["a.jpg", "b.jpg"], [[1], [1, 2]]), 2, readerOutType.FILE_LIST, "result 1 of Given.__next__ is not an array"),
        ((["a.jpg", "b.jpg"], [1]), 2, readerOutType.FILE_LIST, r"shape \(1,\), but there are 2 files"),
    ],
)
def test_what_users_readers_give_is_checked(batch: Any, count: int, output_type: int, text: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){text}.*test_readers.py"):
        run(lambda: fn.MediaExtReaderOp(impl=reader_of(batch, output_type), num_outputs=count)())


def annotated(folder: Path, names: list[str], **changes: Any) -> Any:
    """Write annotations with one box per image, and return a function that reads them."""
    images = [{"id": number, "file_name": name, "height": 8, "width": 8} for number, name in enumerate(names)]
    boxes = [{"id": number, "image_id": number, "category_id": 1, "bbox": [0, 0, 4, 4]} for number in range(len(names))]
    boxes[0] |= changes
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1}]}
    (folder / "annotations.json").write_text(json.dumps(content))
    return lambda **options: fn.CocoReader(
        root=str(folder), annfile=str(folder / "annotations.json"), shuffle=False, **options
    )()


def test_annotations_cannot_name_files_outside_their_folder(tmp_path: Path) -> None:
    read = annotated(tmp_path, ["a.jpg", "../secret.jpg", "b.jpg"])
    with pytest.raises(ReaderError, match=r"'\.\./secret\.jpg' points outside the folder"):
        run(lambda: read()[1])
    assert run(lambda: read(allow_outside_root=True)[1])[0].tolist() == [0, 1, 2]


def test_bad_annotations_fail_the_batch_of_their_image(tmp_path: Path) -> None:
    pipe = Graph(annotated(tmp_path, [f"{number}.jpg" for number in range(6)], bbox=[1, 2, 3]))
    with pytest.raises(ReaderError, match=r"0\.jpg.*the annotation with id 0 has a 'bbox' that is not four"):
        pipe.run()
    assert pipe.run()[1].as_nparray().tolist() == [3, 4, 5]


def test_negative_seeds_count_as_not_given(arrays: list[np.ndarray], tmp_path: Path) -> None:
    assert orders(tmp_path, pipe_seed=5, seed=-1) == orders(tmp_path, pipe_seed=5)
    assert len(orders(tmp_path, pipe_seed=-1)[0]) == COUNT


def test_a_broken_file_ends_one_batch_only(photo_list: list[tuple[Path, int]], tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    files = [str(path) for path, _ in photo_list[:5]]
    files.insert(1, str(broken))

    def make() -> Any:
        reader = fn.ReadImageDatasetFromDir(
            file_list=files, file_classes=list("aabbcc"), shuffle=False, label_dtype=dt.INT32
        )
        paths, labels = reader()
        return fn.ImageDecoder(resize=[8, 8], output_format=imgtype.RGB_P)(paths), labels

    pipe = Graph(make)
    with pytest.raises(DalifyError, match="image"):
        pipe.run()
    assert pipe.run()[1].as_nparray().tolist() == [1, 2, 2]


def test_slices_share_the_dataset(photo_list: list[tuple[Path, int]]) -> None:
    names = [f"{index:02}" for index in range(11)]
    files = [str(photo_list[0][0])] * 11

    def labels(slice_index: int, **options: Any) -> tuple[list[list[int]], list[int | None]]:
        def make() -> Any:
            reader = fn.ReadImageDatasetFromDir(
                file_list=files, file_classes=names, num_slices=2, slice_index=slice_index, **options
            )
            return reader()[1]

        outputs = list(Graph(make))
        return [output[0].as_nparray().tolist() for output in outputs], [output[0].valid for output in outputs]

    assert labels(0, shuffle=False, pad_remainder=True) == ([[0, 2, 4], [6, 8, 10]], [3, 3])
    assert labels(1, shuffle=False, pad_remainder=True) == ([[1, 3, 5], [7, 9, 9]], [3, 2])
    assert labels(1, shuffle=False, drop_remainder=True) == ([[1, 3, 5]], [3])
    first, second = labels(0, seed=3)[0], labels(1, seed=3)[0]
    assert len(set(itertools.chain(*first))) == 6
    assert set(itertools.chain(*first)) | set(itertools.chain(*second)) == set(range(11))
    assert labels(0)[0] != [[0, 2, 4], [6, 8, 10]]
