"""Finding files and labels: results of DALI's reader, and messages if nothing is found."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.files.file_list import FileList, files_given, files_in_class_folders, files_of_list
from dalify.formats.files.positions import open_file

TREE = [
    "B/2.jpg",
    "B/10.jpg",
    "B/x.JPG",
    "B/notes.txt",
    "a/1.png",
    "a/.hidden.jpg",
    "a.x/t.jpg",
    "d/1.Jpeg",
    "d/é.jpg",
    ".hid/q.jpg",
    "sp ace/my file.jpg",
    "deep/inner/z.jpg",
    "deep/y.bmp",
    "top.jpg",
]


def test_many_read_together_equal_those_read_separately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any paths, and with folders without files at any position."""
    monkeypatch.chdir(tmp_path)
    names = ["x", "é", "sub/y", str(tmp_path / "z"), "\udcff", "last"]
    (tmp_path / "sub").mkdir()
    for name in names:
        (tmp_path / name).write_text(ascii(name) * 300)
    folders = [f"{tmp_path}{os.sep}", "", f"{tmp_path / 'sub'}{os.sep}", f".{os.sep}", "."]
    files = FileList(folders, [2, 1, 0, 2, 1], names)
    for numbers in ([0, 1, 2, 3, 4, 5], [5, 0, 0, 3], [4, 2, 1, 0]):
        found = files.read_many(np.array(numbers))
        assert found is not None
        assert [contents.tobytes() for contents in found.samples] == [Path(files[n].path).read_bytes() for n in numbers]
        assert files.labels_of(np.array(numbers)).tolist() == [[files[n].label] for n in numbers]
    assert files.read_many(np.array([2])) is None  # it would not be faster
    copy = pickle.loads(pickle.dumps(files))
    assert copy.read_many(np.arange(4)) is not None


def test_paths(tmp_path: Path) -> None:
    """For relative and absolute names, empty folders, and any order and number of files."""
    folders = [f"{tmp_path}{os.sep}", "", f"é{os.sep}", f"b{os.sep}"]
    names = ["x", "", "é", str(tmp_path / "z"), "sub/\udcff", "last"]
    files = FileList(folders, [2, 0, 3, 1], names)
    for numbers in ([], [0], [5, 4, 3, 2, 1, 0], [3, 3, 1]):
        found = files.paths(np.array(numbers, np.int64))
        assert found is not None
        expected = [os.fsencode(files[number].path) for number in numbers]
        assert len(found) == len(expected)
        assert found.text.tobytes() == b"".join(path + b"\0" for path in expected)
        assert [found.text[start:].tobytes().split(b"\0")[0] for start in found.starts] == expected
        assert found[1:3].starts.tolist() == found.starts.tolist()[1:3]


@pytest.mark.parametrize(("folder", "name"), [("a/", "b\0c"), ("a\0/", "b"), ("", "\0")])
def test_files_with_a_null_byte_in_the_path_are_read_one_by_one(folder: str, name: str) -> None:
    files = FileList([folder], [2], ["x", name])
    assert files.paths(np.arange(2)) is None
    assert files.read_many(np.arange(2)) is None


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "c_empty").mkdir()
    (root / "folder.jpg").mkdir()
    (root / "d" / "link.jpg").symlink_to("../B/2.jpg")
    (root / "linked").symlink_to("B")
    return root


def by_dali(dali: ModuleType, root: Path, **arguments: Any) -> list[tuple[str, int]]:
    fn = pytest.importorskip("nvidia.dali.fn")

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        return tuple(fn.readers.file(name="reader", **arguments))

    pipe = graph()
    found = []
    for _ in range(pipe.reader_meta("reader")["epoch_size"]):
        contents, label = pipe.run()
        found.append((contents[0].source_info().removeprefix(f"{root}/"), int(np.asarray(label[0])[0])))
    return found


def relative(files: FileList, root: Path) -> list[tuple[str, int]]:
    return [(file.path.removeprefix(f"{root}/"), file.label) for file in files]


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"dir_filters": ["a*", "d"]},
        {"dir_filters": ["A*", "b"]},
        {"file_filters": ["*.jpg"]},
        {"file_filters": ["*.jpg"], "case_sensitive_filter": True},
        {"file_filters": ["[0-9].*", "?.jpg"]},
        {"file_filters": ["*.jpg", "2*"], "dir_filters": ["B", "linked"]},
    ],
)
def test_class_folders_equal_dali(oracle: ModuleType, tree: Path, filters: dict[str, Any]) -> None:
    ours = files_in_class_folders(str(tree), **filters)
    assert relative(ours, tree) == by_dali(oracle, tree, file_root=str(tree), **filters)


def test_a_link_that_cannot_be_followed_is_an_error_when_it_is_read(tree: Path) -> None:
    for name in ("loop", "a/loop.jpg"):
        (tree / name).symlink_to(Path(name).name)
    (tree / "a/absent.jpg").symlink_to("nowhere")
    files = files_in_class_folders(str(tree), dir_filters=["a", "loop"], file_filters=["[!.]*.jpg"])
    assert relative(files, tree) == [("a/absent.jpg", 0), ("a/loop.jpg", 0)]
    with pytest.raises(ReaderError, match=r"loop\.jpg'"), open_file(files[1].path):
        pass


def test_labels_count_empty_folders_in_byte_order(tree: Path) -> None:
    labels = {path.split("/")[0]: label for path, label in relative(files_in_class_folders(str(tree)), tree)}
    assert labels == {".hid": 0, "B": 1, "a": 2, "a.x": 3, "d": 5, "deep": 6, "linked": 8, "sp ace": 9}


@pytest.mark.parametrize(
    "text",
    [
        "B/2.jpg 3\na/1.png 4\n",
        "B/2.jpg 3\r\n\r\na/1.png 4",
        "sp ace/my file.jpg 5\n",
        "B/2.jpg\t3\n",
        "B/2.jpg   3   \n",
        "B/notes.txt 3\n",
    ],
)
def test_lists_are_read_as_dali_reads_them(oracle: ModuleType, tree: Path, text: str) -> None:
    path = tree / "list.txt"
    path.write_text(text)
    ours = relative(files_of_list(str(path)), tree)
    assert ours == by_dali(oracle, tree, file_list=str(path))
    moved = tree.parent / "elsewhere.txt"
    moved.write_text(text)
    assert relative(files_of_list(str(moved), str(tree)), tree) == ours


@pytest.mark.parametrize(
    "line", ["a.jpg", "a.jpg x", "a.jpg 1.5", "# comment", "a.jpg 3x", "a.jpg 99999999999", "a.jpg " + "1" * 5000]
)
def test_wrong_lines_are_named_with_their_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text(f"good.jpg 1\n\n{line}\n")
    with pytest.raises(ReaderError, match=r"list\.txt, line 3: "):
        files_of_list(str(path))


def test_files_one_by_one(tree: Path) -> None:
    assert [file[:2] for file in files_given(["x", "y"])] == [("x", 0), ("y", 1)]
    assert [file[:2] for file in files_given(["x", "/y"], [7, -3], "/root")] == [("/root/x", 7), ("/y", -3)]
    with pytest.raises(ArgumentValueError, match="1 label for 2 files"):
        files_given(["x", "y"], [1])
    with pytest.raises(ArgumentValueError, match="32 bits"):
        files_given(["x"], [1 << 31])
    with pytest.raises(ReaderError, match="empty"):
        files_given([])


def test_sequence(tree: Path) -> None:
    files = files_in_class_folders(str(tree))
    everything = list(files)
    assert len(files) == len(everything)
    assert files[-1] == everything[-1]
    assert files[1:4] == everything[1:4]
    assert list(pickle.loads(pickle.dumps(files))) == everything
    assert "entries" in repr(files)
    with pytest.raises(IndexError):
        files[len(files)]


def test_names_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    name = b"caf\xe9.jpg"
    try:
        (Path(str(folder)) / name.decode("utf-8", "surrogateescape")).write_bytes(b"1")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    files = files_in_class_folders(str(tmp_path))
    assert Path(files[0].path).read_bytes() == b"1"


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a.jpg 3\r\n", encoding="utf-8-sig", newline="")
    (entry,) = files_of_list(str(path))
    assert (Path(entry.path).name, entry.label) == ("a.jpg", 3)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16-BE", "UTF-32", "UTF-32-BE"])
def test_other_encodings_are_refused_by_name(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text("\ufeffa.jpg 3\n" if encoding.endswith("BE") else "a.jpg 3\n", encoding=encoding)
    name = encoding.removesuffix("-BE")
    with pytest.raises(ReaderError, match=rf"(?s)list\.txt' is encoded in {name}.*Save it in UTF-8"):
        files_of_list(str(path))


def test_what_to_do_about_a_path_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("target")
    for path, hint in (
        ("~/photos", r"expanduser"),
        ("/nowhere/*.tar", r"sorted\(glob.glob\(pattern\)\)"),
        ("/nowhere/{000..999}.tar", r"sorted\(glob.glob\(pattern\)\)"),
        (str(tmp_path / "link"), "symbolic link to 'target', which does not exist"),
        ("photos", f"The working directory is '{tmp_path}'"),
    ):
        with pytest.raises(ReaderError, match=f"(?s)No such file.*{hint}"):
            files_in_class_folders(path)
        with pytest.raises(ReaderError, match=f"(?s)No such file.*{hint}"):
            open_file(path)
    with pytest.raises(ReaderError) as caught:
        open_file("/nowhere/photo.jpg")
    assert caught.value.hint == ""


def test_missing_items_are_named(tmp_path: Path, tree: Path) -> None:
    with pytest.raises(ReaderError, match=r"nowhere.*No such file"):
        files_in_class_folders(str(tmp_path / "nowhere"))
    with pytest.raises(ReaderError, match=r"nowhere.*No such file"):
        files_of_list(str(tmp_path / "nowhere"))
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ReaderError, match="empty"):
        files_of_list(str(tmp_path / "empty.txt"))
    flat = tmp_path / "flat"
    flat.mkdir()
    with pytest.raises(ReaderError, match="no subfolders"):
        files_in_class_folders(str(flat))
    (flat / "1.jpg").write_text("")
    with pytest.raises(ReaderError, match="contains 1 file"):
        files_in_class_folders(str(flat))
    with pytest.raises(ReaderError, match=r"\.jpg \(10\), \.JPG \(2\), \.txt \(2\), \.Jpeg \(1\)"):
        files_in_class_folders(str(tree), file_filters=["*.gif"])
    with pytest.raises(ReaderError, match=r"Folders there: \.hid, B, a"):
        files_in_class_folders(str(tree), dir_filters=["zebra"])
    with pytest.raises(ArgumentValueError, match="file_filters is an empty list"):
        files_in_class_folders(str(tree), file_filters=[])
    (flat / "class").mkdir()
    with pytest.raises(ReaderError, match=r"no class folder of .* contains a file"):
        files_in_class_folders(str(flat))


def test_an_empty_folder_is_named_with_the_alternatives(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match=r"has no subfolders: .* It is empty\.") as caught:
        files_in_class_folders(str(tmp_path))
    assert caught.value.hint == "Use files=[...] or file_list=... for files that are not in class folders."
