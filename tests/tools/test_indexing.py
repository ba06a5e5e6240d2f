"""The command-line tools that write indices."""

from __future__ import annotations

import pytest

from dalify.tools import rec2idx, tfrecord2idx, wds2idx
from dalify.tools.indexing import index_tool
from tests.operators.readers.datasets import write_tar


@pytest.mark.parametrize(("tool", "name"), [(rec2idx, "rec2idx"), (tfrecord2idx, "tfrecord2idx"), (wds2idx, "wds2idx")])
def test_the_tools_of_all_containers(tool, name, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        tool.main(["--help"])
    assert ended.value.code == 0
    index = "[index]" if tool is wds2idx else "index"
    assert capsys.readouterr().out.startswith(f"usage: {name} [-h] file {index}")
    assert tool.main([str(tmp_path / "missing"), str(tmp_path / "index")]) == 1
    assert "missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("archive", "index"), [("train.tar", "train.idx"), ("a.b.tar", "a.idx"), (".c.tar", ".c.idx"), ("d", "d.idx")]
)
def test_the_default_index_of_an_archive_is_beside_it(tmp_path, archive, index):
    folder = tmp_path / "with.dots"
    folder.mkdir()
    write_tar(folder / archive, [("0.jpg", b"x")])
    assert wds2idx.main([str(folder / archive)]) == 0
    assert {item.name for item in folder.iterdir()} == {archive, index}


def test_the_disk_is_full(capsys, tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.tar"
    write_tar(path, [(f"{number}.jpg", b"x") for number in range(100)])
    index = tmp_path / "index"
    assert wds2idx.main([str(path), str(index)]) == 0  # compiles: the files of the kernel cache exceed the limit
    index.unlink()
    capsys.readouterr()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # like a full disk, an error while writing
    try:
        status = wds2idx.main([str(path), str(index)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 1
    assert capsys.readouterr().err == f"cannot write the index {str(index)!r}: File too large.\n"
    assert [item.name for item in tmp_path.iterdir()] == ["a.tar"]  # no part of an index


def test_what_a_tool_prints(capsys):
    main = index_tool("tool", "a list", lambda path, index: len(path) + len(index), "letters")
    assert main(["abc", "de"]) == 0
    assert capsys.readouterr().out == "5 letters\n"
