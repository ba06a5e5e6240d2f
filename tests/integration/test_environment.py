"""Programs in restricted environments: no home, no working directory, other encodings, no writable folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

PROJECT = Path(__file__).parent.parent.parent
PROGRAM = """
import os, sys, tempfile
import numpy as np
from dalify import eager, fn, pipeline_def
from dalify.base.errors import ReaderError

@pipeline_def(batch_size=3, num_threads=2)
def reading(folder):
    encoded, label = fn.readers.file(file_root=folder)
    images = fn.decoders.image(encoded)
    if label[0] == 0:
        images = fn.flip(images)
    return fn.resize(images, size=[4, 4]), fn.get_property(encoded, key="source_info")

@pipeline_def(batch_size=1, num_threads=1, py_num_workers=1)
def calling():
    return fn.external_source(source=sample, parallel=True, batch=False)

def sample(info):
    return np.full(3, info.idx_in_epoch, np.uint8)

if __name__ == "__main__":
    if "--no-working-folder" in sys.argv:
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        os.rmdir(folder)
    pipe = reading(sys.argv[1])
    images, names = pipe.run()
    assert images.as_array().shape == (3, 4, 4, 3), images
    assert [os.fsdecode(names.at(place).tobytes()) for place in range(3)] == sys.argv[2:5], sys.argv
    pipe.explain(), pipe.state_dict(), pipe.serialize()
    pipe.close()
    pipe = calling()
    assert pipe.run()[0].at(0).tolist() == [0, 0, 0]
    pipe.close()
    assert eager.flip(np.zeros((4, 4, 3), np.uint8)).shape == (4, 4, 3)
    try:
        reading(sys.argv[1] + "/" + sys.argv[2]).run()
    except ReaderError as error:
        print(ascii(str(error)))
    else:
        raise SystemExit("a file is no folder")
"""


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, list[str]]:
    """Images with names in several encodings, one of them invalid; and their names in the order of a reader."""
    image = cv2.imencode(".png", np.full((10, 12, 3), 7, np.uint8))[1].tobytes()
    names = [b"a/plain.png", "a/\u00e4\u4e2d.png".encode(), b"b/x\xff.png"]
    for name in names:
        path = tmp_path / "photos" / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.write_bytes(image)
        except OSError:
            pytest.skip("the file system takes no such names")
    return tmp_path / "photos", list(map(os.fsdecode, names))


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, ["--no-working-folder"]),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, []),
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}, []),
        ({"HOME": None, "TMPDIR": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}, []),
        ({"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1"}, []),
    ],
    ids=["no working folder", "C locale", "latin-1 output", "no home", "optimized"],
)
def test_programs_run(
    tmp_path: Path, photos: tuple[Path, list[str]], environment: dict[str, str | None], flags: list[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    settings = {**os.environ, "PYTHONPATH": str(PROJECT), **environment}
    folder, names = photos
    command = [sys.executable, "-W", "error", str(program), str(folder), *names]
    if flags:  # compiled kernels do not need a working folder
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(PROJECT)}, check=True, timeout=300, cwd=tmp_path)
    done = subprocess.run(
        [*command, *flags],
        env={name: value for name, value in settings.items() if value is not None},
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert b"cannot read the folder" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "program.py"]


def test_an_archive_is_refused_with_its_path(tmp_path: Path) -> None:
    archive = tmp_path / "dalify.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (PROJECT / "dalify").rglob("*.py"):
            file.write(path, path.relative_to(PROJECT))
    done = subprocess.run(
        [sys.executable, "-c", "from dalify import fn; fn.flip"],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert archive.name in done.stderr.rpartition("ImportError")[2]
    assert "It cannot be imported from a zip archive" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can write everywhere")
def test_data_that_cannot_be_written(photos: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, names = photos
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        subprocess.run(
            [sys.executable, str(program), str(folder), *names],
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            check=True,
            timeout=300,
            capture_output=True,
        )
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
