"""readers.webdataset compared with DALI, and tar archives of all forms compared with Python's tarfile."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalify
from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.formats.records.tar import members
from dalify.tools import wds2idx
from tests.operators.readers.datasets import run_reader, write_tar

FILES = [
    ("d/s0.jpg", b"j0"),
    ("d/s0.cls", b"\0\0\0\0"),
    ("d/s1.jpg", b"j1"),
    ("d/s1.left.png", b"p1"),
    ("s2.cls", b"\1\0\0\0"),
    ("s2.JPG", b"J2"),
    ("s3", b"no extension"),
    ("s4.jpg", b""),
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_tar(tmp_path / "a.tar", FILES)
    return tmp_path / "a.tar"


def read(package: Any, archive: Path, batch_size: int = 6, **options: Any) -> list[list[Any]]:
    _, (outputs,), meta = run_reader(package, "readers.webdataset", 1, batch_size, paths=str(archive), **options)
    found = [[(item.dtype.str, item.tolist()) for item in output] for output in outputs]
    return [meta["epoch_size"], *found]


@pytest.mark.parametrize(
    "options",
    [
        {"ext": ["jpg", "cls"]},
        {"ext": ["jpg;JPG", "left.png;cls"]},
        {"ext": ["jpg", "cls"], "case_sensitive_extensions": False},
        {"ext": ["jpg", "cls"], "missing_component_behavior": "skip"},
        {"ext": ["jpg"], "missing_component_behavior": "Skip"},
        {"ext": "cls", "dtypes": lambda package: package.types.INT32},
        {"ext": ["zzz"]},
        {"ext": [""]},
        {"ext": ["jpg", "jpg"]},
        {"ext": ["jpg; cls"]},
    ],
    ids=range(10),
)
@pytest.mark.parametrize("has_index", [False, True], ids=["scan", "index"])
@pytest.mark.filterwarnings("ignore:no sample has a file")
def test_options_equal_dali(oracle: ModuleType, archive: Path, capsys: Any, options: dict[str, Any], has_index: bool):
    if has_index:
        assert wds2idx.main([str(archive), str(archive) + ".idx"]) == 0
        options = {**options, "index_paths": str(archive) + ".idx"}
    assert read(dalify, archive, **options) == read(oracle, archive, **options)


@pytest.mark.parametrize("has_index", [False, True], ids=["scan", "index"])
def test_an_extension_that_no_file_has_is_a_warning(archive: Path, capsys: Any, has_index: bool):
    options = {}
    if has_index:
        assert wds2idx.main([str(archive), str(archive) + ".idx"]) == 0
        options = {"index_paths": str(archive) + ".idx"}
    with pytest.warns(UserWarning, match=r"no sample has a file for ext '\.jpg'.*without the first dot"):
        read(dalify, archive, ext=[".jpg", "cls"], **options)
    with pytest.warns(UserWarning, match=r"no sample has a file for ext 'zzz': this output is always empty\.$"):
        read(dalify, archive, ext=["jpg", "zzz"], **options)


def test_the_first_of_several_is_used(oracle: ModuleType, tmp_path: Path):
    path = tmp_path / "a.tar"
    write_tar(path, [("a.jpg", b"1"), ("a.jpg", b"2"), ("a.cls", b"x"), ("b.jpg", b"3"), ("a.cls", b"5")])
    with pytest.warns(UserWarning, match="the first one is used"):
        ours = read(dalify, path, 3, ext=["jpg", "cls"])
    assert ours == read(oracle, path, 3, ext=["jpg", "cls"])


def test_hidden_files_are_ignored(tmp_path: Path):
    """They are passed over with and without an index; DALI agrees with an index only."""
    path = tmp_path / "a.tar"
    write_tar(path, [("d/a.jpg", b"1"), ("d/.hidden.jpg", b"h"), (".b", b"h"), ("d/a.cls", b"2")])
    assert read(dalify, path, 1, ext=["jpg", "cls"]) == [1, [("|u1", [49])], [("|u1", [50])]]
    wds2idx.main([str(path), str(path) + ".idx"])
    assert (tmp_path / "a.tar.idx").read_text() == "v1.2 1\njpg 512 1 d/a.jpg cls 3584 1 d/a.cls\n"


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names(tmp_path: Path, form: int):
    stem = "folder/" * 12 + "x" * 90 if form == tarfile.USTAR_FORMAT else "ü" * 80 + "y" * 150
    path = tmp_path / "a.tar"
    write_tar(path, [(f"{stem}.jpg", b"1"), (f"{stem}.cls", b"2"), (f"{stem}z.cls", b"3")], form)
    assert read(dalify, path, 2, ext=["jpg", "cls"]) == [
        2,
        [("|u1", [49]), ("|u1", [])],
        [("|u1", [50]), ("|u1", [51])],
    ]


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=180),
                  st.binary(max_size=1200), st.sampled_from("0021")),
        max_size=6,
    ),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    st.sampled_from([0, 1.25]),
)  # fmt: skip
def test_members_equal_those_of_tarfile(files: list[tuple[str, bytes, str]], form: int, mtime: float):
    """Any names and sizes; links and folders are passed over."""
    import tempfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, contents, kind in files:
            member = tarfile.TarInfo(name)
            member.type = kind.encode()
            member.mtime = mtime  # pyright: ignore[reportAttributeAccessIssue]
            member.linkname = "other" if kind == "2" else ""
            member.size = len(contents) if kind == "0" else 0
            archive.addfile(member, io.BytesIO(contents))
    data = stream.getvalue()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [
            (member.name.encode(errors="surrogateescape"), member.offset_data, member.size)
            for member in archive
            if member.isreg()
        ]
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = list(members(file.name))
    assert [tuple(member) for member in found] == expected


@given(st.integers(0, 10000), st.integers(0, 255), st.integers(0, 10240))
def test_damaged_archives_are_reported(place: int, byte: int, stop: int):
    """Any bytes give members inside the archive or our error."""
    import tempfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a" * 120, "b.jpg"):
            member = tarfile.TarInfo(name)
            member.size = 700
            archive.addfile(member, io.BytesIO(bytes(700)))
    data = bytearray(stream.getvalue())
    data[place % len(data)] = byte
    with tempfile.NamedTemporaryFile() as file:
        file.write(data[: max(stop, 1)])
        file.flush()
        try:
            found = list(members(file.name))
        except ReaderError:
            return
    assert all(member.offset + member.size <= len(data) for member in found)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty"),
        (b"garbage" * 300, "is not a tar archive"),
        (b"x" * 100, "is truncated"),
        (b"\x1f\x8b" * 50, "(?s)is truncated.*Decompress it"),
        (b"\x1f\x8b" * 999, "(?s)is not a tar archive.*Decompress it"),
    ],
)
def test_files_that_are_not_archives(tmp_path: Path, contents: bytes, message: str):
    (tmp_path / "a.tar").write_bytes(contents)
    with pytest.raises(ReaderError, match=message):
        read(dalify, tmp_path / "a.tar", ext="jpg")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("", "not a WebDataset index"),
        ("v9 1\njpg 512 2\n", "not a WebDataset index"),
        ("v1.2 2\njpg 512 2 a.jpg\n", "is truncated"),
        ("v1.2 1\njpg 512 2\n", r"line 2: expected extension, offset \(a multiple of 512\), size, name"),
        ("v1.1 1\njpg x 2\n", "line 2"),
        ("v1.1 1\njpg -5 2\n", "line 2"),
        ("v1.1 1\n\n", "line 2"),
        ("v1.1 1\njpg 513 2\n", r"line 2: expected extension, offset \(a multiple of 512\)"),
        ("v1.1 1\ntxt 500 2 jpg 512 2\n", "line 2"),
        ("v1.1 1\njpg 512 2000000\n", "ends before"),
        ("v1.1 1\njpg 99999999999999999999 2\n", "line 2"),
    ],
)
def test_damaged_indices(archive: Path, index: str, message: str):
    Path(f"{archive}.idx").write_text(index)
    with pytest.raises(ReaderError, match=message):
        read(dalify, archive, 1, ext="jpg", index_paths=f"{archive}.idx")


@pytest.mark.parametrize("ext", ["jpg", "jpg;cls"])  # if several files match, the index is parsed line by line
@pytest.mark.filterwarnings("ignore:.*the first one is used")
def test_byte_order_marks_of_indices(archive: Path, ext: str, capsys: Any):
    index = Path(f"{archive}.idx")
    assert wds2idx.main([str(archive), str(index)]) == 0
    text = index.read_text()
    options: dict[str, Any] = {"ext": ext, "index_paths": str(index)}
    expected = read(dalify, archive, 1, **options)
    index.write_text(text, encoding="utf-8-sig")
    assert read(dalify, archive, 1, **options) == expected
    index.write_text(text, encoding="utf-16")
    with pytest.raises(ReaderError, match=r"(?s)the index .*\.idx' is encoded in UTF-16\.\n.*Save it in UTF-8"):
        read(dalify, archive, 1, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ext": ["jpg", "cls"], "missing_component_behavior": "error"}, ReaderError, "has no file for ext 'cls'"),
        ({"ext": "jpg", "missing_component_behavior": "foo"}, ArgumentValueError, "must be one of"),
        (
            {"ext": ["jpg", "jpg"], "missing_component_behavior": "error"},
            ArgumentValueError,
            "ext must not have two outputs with the same extensions with missing_component_behavior='error'; "
            "got 'jpg' and 'jpg'",
        ),
        (
            {"ext": ["jpg;png", "cls", "png;jpg"], "missing_component_behavior": "skip"},
            ArgumentValueError,
            "got 'jpg;png' and 'png;jpg'",
        ),
        (
            {"ext": ["JPG", "jpg"], "missing_component_behavior": "Skip", "case_sensitive_extensions": False},
            ArgumentValueError,
            "got 'JPG' and 'jpg'",
        ),
        ({"ext": []}, ArgumentValueError, "ext must not be empty"),
        ({"ext": ["zzz"], "missing_component_behavior": "skip"}, ReaderError, "nothing to read"),
        ({"ext": ["jpg", "cls"], "dtypes": [dalify.types.UINT8]}, ArgumentValueError, "got 1 for 2 outputs"),
        ({"ext": ["jpg"], "dtypes": [dalify.types.INT32]}, ReaderError, "not a multiple of the element size"),
        ({"ext": ["jpg"], "dtypes": [dalify.types.STRING]}, ArgumentValueError, "must be numeric types"),
        ({"ext": ["jpg"], "dtypes": [dalify.types.BOOL]}, ArgumentValueError, "must be numeric types"),
        ({"ext": ["jpg"], "index_paths": ["a", "b"]}, ArgumentValueError, "one per file"),
        ({"ext": ["jpg"], "index_paths": ["/nowhere"]}, ReaderError, "cannot read the index"),
    ],
)
def test_mistakes(archive: Path, options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        read(dalify, archive, 1, **options)
    with pytest.raises(ReaderError, match="cannot open the file"):
        read(dalify, archive.with_name("none.tar"), 1, ext="jpg")


def test_the_tool_reports_mistakes(tmp_path: Path, capsys: Any):
    write_tar(tmp_path / "a.tar", [("a b.jpg", b"1"), ("a b.cls", b"2")])
    assert wds2idx.main([str(tmp_path / "a.tar"), str(tmp_path / "a.idx")]) == 0
    assert (tmp_path / "a.idx").read_text() == "v1.1 1\njpg 512 1 cls 1536 1\n"
    assert wds2idx.main([str(tmp_path / "none.tar"), str(tmp_path / "b.idx")]) == 1
    write_tar(tmp_path / "b.tar", [(".a", b"")])
    assert wds2idx.main([str(tmp_path / "b.tar"), str(tmp_path / "b.idx")]) == 1
    assert "contains no samples" in capsys.readouterr().err


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["GNU", "pax"])
def test_sparse_files_are_refused(tmp_path: Path, form: int):
    """The archive has only the parts of such a file that are not zero, which DALI returns, or leaves out."""
    archive = tmp_path / "sparse.tar"
    with tarfile.open(archive, "w", format=form) as file:
        for name, contents in (("a.jpg", b"whole"), ("b.jpg", b"parts")):
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            if contents == b"parts" and form == tarfile.GNU_FORMAT:
                member.type = tarfile.GNUTYPE_SPARSE
            elif contents == b"parts":
                member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": name}
            file.addfile(member, io.BytesIO(contents))
    with pytest.raises(ReaderError, match=r"(?s)sparse\.tar' contains a sparse file, at byte .*without .*--sparse"):
        read(dalify, archive, ext=["jpg"])


def test_compared_with_the_webdataset_package(tmp_path: Path):
    package = pytest.importorskip("webdataset", reason="an independent writer")
    with package.TarWriter(str(tmp_path / "a.tar")) as writer:
        for number in range(5):
            writer.write({"__key__": f"k{number}", "bin": bytes([number] * number), "txt": f"text {number}"})
    found = read(dalify, tmp_path / "a.tar", 5, ext=["txt", "bin"])
    assert [bytes(values).decode() for _, values in found[1]] == [f"text {number}" for number in range(5)]
    assert [values for _, values in found[2]] == [[number] * number for number in range(5)]


def test_types_are_views(tmp_path: Path):
    write_tar(tmp_path / "a.tar", [("a.npy", np.arange(3, dtype="<f4").tobytes())])
    found = read(dalify, tmp_path / "a.tar", 1, ext="npy", dtypes=[dalify.types.FLOAT])
    assert found == [1, [("<f4", [0.0, 1.0, 2.0])]]
