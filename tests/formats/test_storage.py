"""Remote files: retries, a bounded cache, and error messages."""

from __future__ import annotations

import errno
import functools
import http.server
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import dalify
from dalify import fn, pipeline_def
from dalify.base import limits
from dalify.base.errors import ArgumentValueError, LimitError, ReaderError
from dalify.formats.files import disk_cache, storage
from dalify.formats.files.file_list import files_in_class_folders
from dalify.formats.records.webdataset import write_index
from tests.helpers.platforms import needs_posix
from tests.helpers.programs import finished
from tests.helpers.web_server import Behavior, web_server
from tests.operators.readers.datasets import DATASETS, run_reader, write_tar

pytest.importorskip("aiohttp")


@pytest.fixture(autouse=True)
def quick_options() -> Iterator[None]:
    storage.configure(timeout_s=60, retries=0)
    yield
    storage.configure()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for label, name in enumerate("ab"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(6):
            (tmp_path / "data" / name / f"{number}.jpg").write_bytes(bytes([10 * label + number]) * (number + 1))
    return tmp_path / "data"


@pytest.fixture
def server(folder: Path) -> Iterator[tuple[str, Behavior]]:
    with web_server(folder) as found:
        yield found


def test_whole_files_and_parts(folder: Path, server: tuple[str, Behavior]) -> None:
    (folder / "numbers").write_bytes(bytes(range(200)))
    (folder / "empty").write_bytes(b"")
    url, _ = server
    assert storage.read(f"{url}/numbers").tolist() == list(range(200))
    assert storage.read(f"{url}/numbers", 20, 30).tolist() == list(range(20, 50))
    assert storage.read(f"{url}/numbers", 190).tolist() == list(range(190, 200))
    assert storage.read(f"{url}/numbers", 20, 0).size == storage.read(f"{url}/empty").size == 0
    assert storage.read(f"{url}/numbers").flags.writeable
    assert storage.size_of(f"{url}/numbers") == 200
    with pytest.raises(ReaderError, match=r"numbers' ends before byte 230"):
        storage.read(f"{url}/numbers", 180, 50)


def test_folders(server: tuple[str, Behavior]) -> None:
    url, _ = server
    folders, files = storage.list_folder(url)
    assert (sorted(folders), files) == (["a", "b"], [])
    found = files_in_class_folders(url)
    assert len(found) == 12
    assert found.is_remote
    assert found[7][:2] == (f"{url}/b/1.jpg", 1)
    assert found[7].origin.name == "b/1.jpg"


@pytest.mark.parametrize(
    ("root", "name", "expected"),
    [
        ("s3://bucket", "a.jpg", "s3://bucket/a.jpg"),
        ("s3://bucket/", "a.jpg", "s3://bucket/a.jpg"),
        ("/data", "s3://bucket/a.jpg", "s3://bucket/a.jpg"),
        ("/data", "a.jpg", str(Path("/data", "a.jpg"))),
        (None, "a.jpg", "a.jpg"),
    ],
)
def test_joined(root: str | None, name: str, expected: str) -> None:
    assert storage.joined(root, name) == expected


def test_absent_file_is_reported_immediately(server: tuple[str, Behavior]) -> None:
    url, behavior = server
    storage.configure(retries=5)
    with pytest.raises(ReaderError, match=r"nowhere'.*no such file"):
        storage.read(f"{url}/nowhere")
    assert len(behavior.asked) == 1


def test_failed_requests_are_repeated(server: tuple[str, Behavior], monkeypatch: pytest.MonkeyPatch) -> None:
    url, behavior = server
    waits: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", waits.append)
    monkeypatch.setattr(storage.random, "uniform", lambda low, high: 1.0)
    storage.configure(retries=7)
    behavior.failures = 7
    assert storage.read(f"{url}/a/3.jpg").tolist() == [3] * 4
    assert [wait for wait in waits if wait] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    behavior.failures = 8
    with pytest.raises(ReaderError, match=r"503.*8 attempts, each of at most 30 s") as caught:
        storage.read(f"{url}/a/3.jpg")
    assert "Increase timeout_s or retries with storage.configure" in str(caught.value)


def test_storage_that_stalls(server: tuple[str, Behavior]) -> None:
    url, behavior = server
    behavior.delay_s = 60
    storage.configure(timeout_s=0.3, retries=0)
    began = time.perf_counter()
    with pytest.raises(ReaderError, match=r"one attempt, each of at most 0\.3 s"):
        storage.read(f"{url}/a/3.jpg")
    assert time.perf_counter() - began < 30


def test_unknown_scheme() -> None:
    with pytest.raises(ReaderError, match=r"cannot read 'nosuch://x': Protocol not known: nosuch"):
        storage.read("nosuch://x")


@pytest.mark.parametrize("options", [{"cache_bytes": 0}, {"timeout_s": 0}, {"retries": -1}])
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentValueError, match="must be positive"):
        storage.configure(**options)


# -- the cache


def test_second_time_comes_from_the_cache(tmp_path: Path, server: tuple[str, Behavior]) -> None:
    url, behavior = server
    storage.configure(cache_folder=tmp_path / "cache")
    for _ in range(3):
        assert storage.read(f"{url}/a/5.jpg").tolist() == [5] * 6
        assert storage.read(f"{url}/a/5.jpg", 1, 2).tolist() == [5] * 2
    assert len(behavior.asked) == 2


def test_folder_of_the_environment_stays_when_something_else_is_configured(tmp_path: Path) -> None:
    program = (
        "from dalify import storage; from dalify.formats.files import storage as inner\n"
        "storage.configure(retries=1); print(inner._cache.folder)\n"
        "storage.configure(cache_folder=None); print(inner._cache)"
    )
    environment = {**os.environ, "DALIFY_CACHE": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == [str(tmp_path), "None"]


@pytest.mark.parametrize("by_environment", [False, True])
def test_the_cache_is_a_folder_of_this_machine(tmp_path: Path, by_environment: bool) -> None:
    folder = "s3://bucket/cache"
    argument, environment = ("", {"DALIFY_CACHE": folder}) if by_environment else (f"cache_folder={folder!r}", {})
    result = subprocess.run(
        [sys.executable, "-c", f"from dalify import storage; storage.configure({argument})"],
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    name = "DALIFY_CACHE" if by_environment else "cache_folder"
    assert f"{name} must be a local folder; got 's3://bucket/cache'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_copies_without_a_cache_are_deleted_with_the_process(server: tuple[str, Behavior]) -> None:
    program = f"from dalify.formats.files import storage; print(storage.local_copy({server[0] + '/a/3.jpg'!r}))"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stderr == ""
    assert not Path(result.stdout.strip()).exists()


COPIES_AND_FORKS = """
import multiprocessing, os, sys
from pathlib import Path
from dalify.formats.files import storage

def copied(name):
    path = storage.local_copy(f"{sys.argv[1]}/a/{name}.jpg")
    print(path, flush=True)
    return path

ours = copied(3)
for child in (0, 1):
    if not (number := os.fork()):
        assert storage.copy_or_path(f"{sys.argv[1]}/a/3.jpg") == ours == storage.local_copy(f"{sys.argv[1]}/a/3.jpg")
        if child:
            copied(4)
        sys.exit(0)
    assert os.waitpid(number, 0)[1] == 0
    assert Path(ours).exists()
process = multiprocessing.get_context("fork").Process(target=copied, args=(5,))
process.start()
process.join()
assert process.exitcode == 0
assert Path(ours).exists()
"""


@needs_posix
def test_copies_belong_to_the_process_that_made_them(server: tuple[str, Behavior]) -> None:
    status, out, errors = finished(COPIES_AND_FORKS, server[0])
    assert (status, errors) == (0, "")
    copies = [Path(line) for line in out.splitlines()]
    assert len(copies) == 3
    assert not [copy for copy in copies if copy.parent.exists()]


def test_cache_is_bounded_and_drops_what_is_oldest(tmp_path: Path, folder: Path, server: tuple[str, Behavior]) -> None:
    url, behavior = server
    for number in range(10):
        (folder / f"{number}").write_bytes(bytes([number]) * 100)
    cache = tmp_path / "cache"
    storage.configure(cache_folder=cache, cache_bytes=550)
    now = time.time()
    for number in range(10):
        storage.read(f"{url}/{number}")
        for age, path in enumerate(sorted(cache.iterdir(), key=lambda item: item.stat().st_mtime, reverse=True)):
            os.utime(path, (now - 10 * age, now - 10 * age))  # clocks of file systems are coarse
        storage.read(f"{url}/0")  # the one that is always needed
        assert sum(path.stat().st_size for path in cache.iterdir()) <= 550
    assert behavior.asked.count("/0") == 1
    assert behavior.asked.count("/1") == 1
    storage.read(f"{url}/1")
    assert behavior.asked.count("/1") == 2


def test_full_disk_costs_the_cache_only(
    tmp_path: Path, server: tuple[str, Behavior], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, behavior = server
    storage.configure(cache_folder=tmp_path / "cache")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(UserWarning, match="no more files are written to the cache .*the disk is full"):
        assert storage.read(f"{url}/a/3.jpg").tolist() == [3] * 4
    assert storage.read(f"{url}/a/3.jpg").tolist() == [3] * 4  # reported once
    assert len(behavior.asked) == 2
    assert not list((tmp_path / "cache").iterdir())


def test_copies_of_containers_count_in_the_room_of_the_cache_and_stay_while_they_are_read(
    tmp_path: Path, folder: Path, server: tuple[str, Behavior]
) -> None:
    url, behavior = server
    for name, size in (("large", 700), ("small", 200), ("other", 150)):
        (folder / name).write_bytes(bytes(size))
    cache = tmp_path / "cache"
    storage.configure(cache_folder=cache, cache_bytes=1000)
    storage.local_copy(f"{url}/large")
    storage.configure(cache_folder=cache, cache_bytes=1000)  # as another process finds it
    storage.read(f"{url}/small")
    assert _sizes(cache) == [200, 700]
    for path in cache.iterdir():
        os.utime(path, (0, 0) if path.suffix else None)  # the container is the least recently used file
    held = Path(storage.local_copy(f"{url}/large"))
    os.utime(held.with_suffix(".seal"), (0, 0))
    storage.read(f"{url}/other")
    assert _sizes(cache) == [150, 700]
    (folder / "huge").write_bytes(bytes(900))
    storage.local_copy(f"{url}/huge")  # exceeds the limit: everything that is not in use is deleted
    assert _sizes(cache) == [700, 900]
    storage.read(f"{url}/small")
    assert _sizes(cache) == [700, 900]
    storage.configure(cache_folder=cache, cache_bytes=1000)
    storage.read(f"{url}/small")  # the containers are no longer in use
    assert sum(_sizes(cache)) <= 1000
    assert behavior.asked.count("/large") == 1


def _sizes(cache: Path) -> list[int]:
    """Return the sizes of cached files, without checksums."""
    copies = [path.stat().st_size for path in cache.glob("*.copy")]
    return sorted(copies + [path.stat().st_size - 20 for path in cache.iterdir() if not path.suffix])


def test_full_disk_moves_copies_of_containers(
    tmp_path: Path, folder: Path, server: tuple[str, Behavior], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = server
    cache = tmp_path / "cache"
    (folder / "a.bin").write_bytes(b"abc")
    storage.configure(cache_folder=cache)
    kept = storage.local_copy(f"{url}/a.bin")
    (folder / "b.bin").write_bytes(b"defg")
    replace, full = Path.replace, {cache}

    def refused(self: Path, target: Path) -> Path:
        if target.parent in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.warns(UserWarning, match="no more files are written to the cache .*the disk is full"):
        copy = storage.local_copy(f"{url}/b.bin")
    assert Path(copy).read_bytes() == b"defg"
    assert Path(copy).parent != cache
    assert storage.copy_or_path(f"{url}/b.bin") == copy
    assert storage.local_copy(f"{url}/a.bin") == kept  # what is there is still used
    full.add(Path(copy).parent)
    (folder / "c.bin").write_bytes(b"hi")
    with pytest.raises(ReaderError, match=r"no space for a copy of '.*c.bin' in the folder.*No space left"):
        storage.local_copy(f"{url}/c.bin")


def test_large_files_are_copied_in_parts(
    server: tuple[str, Behavior], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit of one response is timeout_s, and memory contains one part."""
    monkeypatch.setattr(storage, "_PART_BYTES", 1000)
    url, behavior = server
    contents = np.random.default_rng(1).bytes(4500)
    (folder / "large.bin").write_bytes(contents)
    assert Path(storage.local_copy(f"{url}/large.bin")).read_bytes() == contents
    assert len(behavior.asked) == 5


def test_copies_from_servers_that_know_no_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PART_BYTES", 1000)
    (folder / "large.bin").write_bytes(bytes(range(250)) * 18)
    handler = functools.partial(_Plain, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        copy = storage.local_copy(f"http://127.0.0.1:{server.server_port}/large.bin")
        server.shutdown()
    assert Path(copy).read_bytes() == bytes(range(250)) * 18


class _Plain(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Do not log."""


def test_local_copy(tmp_path: Path, server: tuple[str, Behavior]) -> None:
    url, behavior = server
    path = storage.local_copy(f"{url}/a/3.jpg")
    assert Path(path).read_bytes() == bytes([3] * 4)
    assert storage.local_copy(f"{url}/a/3.jpg") == path
    assert len(behavior.asked) == 1


# -- in a pipeline


@pipeline_def(batch_size=4, num_threads=1, prefetch_queue_depth=3)
def reading(url: str, random_shuffle: bool = False) -> Any:
    return fn.readers.file(file_root=url, name="Reader", random_shuffle=random_shuffle)


def test_remote_and_local_readers_give_the_same(folder: Path, server: tuple[str, Behavior]) -> None:
    url, _ = server
    here, there = reading(str(folder), random_shuffle=True, seed=1), reading(url, random_shuffle=True, seed=1)
    for _ in range(5):
        for one, other in zip(here.run(), there.run(), strict=True):
            for index in range(4):
                np.testing.assert_array_equal(one.at(index), other.at(index))


def test_reads_ahead(server: tuple[str, Behavior]) -> None:
    """Requests run in parallel although only one thread computes."""
    url, behavior = server
    pipe = reading(url)
    pipe.build()
    behavior.asked.clear()
    behavior.delay_s = 0.1
    for _ in range(3):
        pipe.run()
    assert behavior.largest_at_once >= 4


def test_nothing_is_read_twice(server: tuple[str, Behavior]) -> None:
    url, behavior = server
    pipe = reading(url)
    pipe.build()
    behavior.asked.clear()
    for _ in range(3):
        pipe.run()
    pipe.close()
    # Twelve files, and the prefetched ones of the next epoch.
    counts = Counter(behavior.asked)
    assert set(counts) == {f"/{name}/{number}.jpg" for name in "ab" for number in range(6)}
    assert max(counts.values()) <= 2
    assert len(behavior.asked) <= 20


def test_a_failing_request_fails_only_its_batch(server: tuple[str, Behavior]) -> None:
    url, behavior = server
    pipe = reading(url, prefetch_queue_depth=1)
    pipe.build()
    behavior.failures = 1
    with pytest.raises(ReaderError, match=r"503") as caught:
        pipe.run()
    assert "from http://127.0.0.1" in str(caught.value)
    pipe.run()


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_closing_does_not_wait_for_a_storage_that_stalls(server: tuple[str, Behavior], on_error: str) -> None:
    storage.configure(timeout_s=60, retries=0)
    pipe = reading(server[0], on_error=on_error)
    pipe.build()
    server[1].delay_s = 60
    pipe.schedule_run()
    time.sleep(0.3)  # threads wait by now
    start = time.perf_counter()
    pipe.close()
    assert time.perf_counter() - start < 30
    server[1].delay_s = 0


def test_reset_and_resume(server: tuple[str, Behavior]) -> None:
    url, _ = server
    pipe = reading(url, random_shuffle=True, seed=2)
    first = [pipe.run()[1].as_array().tolist() for _ in range(3)]
    state = pipe.state_dict()
    following = [pipe.run()[1].as_array().tolist() for _ in range(3)]
    pipe.load_state_dict(state)
    assert [pipe.run()[1].as_array().tolist() for _ in range(3)] == following
    pipe.start_epoch(0)
    assert [pipe.run()[1].as_array().tolist() for _ in range(3)] == first


def test_bad_file_is_skipped(folder: Path, server: tuple[str, Behavior]) -> None:
    url, _ = server
    pipe = reading(url, on_error="skip")
    pipe.build()
    (folder / "a" / "2.jpg").unlink()
    for _ in range(3):
        pipe.run()
    assert {sample.source for sample in pipe.bad_samples()} == {f"{url}/a/2.jpg"}


# -- containers

REMOTE = [
    "readers.arrow",
    "readers.coco",
    "readers.file",
    "readers.hdf5",
    "readers.mxnet",
    "readers.numpy",
    "readers.parquet",
    "readers.tfrecord",
    "readers.webdataset",
]


def _elsewhere(value: Any, folder: Path, url: str) -> Any:
    """Return an argument of a reader with URLs instead of paths."""
    if isinstance(value, str):
        return value.replace(str(folder), url)
    return [_elsewhere(item, folder, url) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize("keeps", [True, False], ids=["cache", "no cache"])
def test_containers_elsewhere(tmp_path: Path, name: str, keeps: bool) -> None:
    """Remote data are equal to local data, byte for byte."""
    folder = tmp_path / "data"
    folder.mkdir()
    arguments = DATASETS[name](folder, 7)
    storage.configure(cache_folder=tmp_path / "cache" if keeps else None)
    with web_server(folder) as (url, _):
        elsewhere = {key: _elsewhere(value, folder, url) for key, value in arguments.items()}
        assert elsewhere != arguments
        layouts, batches, meta = run_reader(dalify, name, 4, random_shuffle=True, **arguments)
        other_layouts, other_batches, other_meta = run_reader(dalify, name, 4, random_shuffle=True, **elsewhere)
    assert (layouts, meta) == (other_layouts, other_meta)
    for outputs, others in zip(batches, other_batches, strict=True):
        for samples, other_samples in zip(outputs, others, strict=True):
            for one, other in zip(samples, other_samples, strict=True):
                np.testing.assert_array_equal(one, other)


def test_archives_with_an_index_are_read_in_parts(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    write_tar(folder / "a.tar", [(f"{number}.txt", bytes([number]) * 100_000) for number in range(8)])
    write_index(str(folder / "a.tar"), str(folder / "a.idx"))
    with web_server(folder) as (url, behavior):
        given = {"paths": [f"{url}/a.tar"], "index_paths": [f"{url}/a.idx"], "ext": ["txt"]}
        _, batches, _ = run_reader(dalify, "readers.webdataset", 2, batch_size=2, num_shards=2, shard_id=1, **given)
        assert [samples[0][0] for outputs in batches for samples in [outputs[0]]] == [4, 6]
        assert behavior.sent_bytes < 700_000


# -- an object store


@pytest.fixture(scope="module")
def object_store() -> Iterator[str]:
    """Yield the address of an S3 server with a bucket."""
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    boto3 = pytest.importorskip("boto3")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=address, **keys)
    client.create_bucket(Bucket="photos")
    for label, name in enumerate("ab"):
        for number in range(3):
            client.put_object(Bucket="photos", Key=f"train/{name}/{number}.jpg", Body=bytes([10 * label + number]) * 5)
    yield address
    client.close()
    server.stop()


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow")  # in the libraries of the object store
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_object_store(object_store: str, monkeypatch: pytest.MonkeyPatch) -> None:

    settings = {"key": "a", "secret": "b", "endpoint_url": object_store}
    monkeypatch.setitem(fsspec.config.conf, "s3", settings)
    pipe = reading("s3://photos/train", batch_size=6)
    contents, labels = pipe.run()
    assert [contents.at(index).tolist() for index in range(6)] == [[value] * 5 for value in (0, 1, 2, 10, 11, 12)]
    assert labels.as_array()[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(ReaderError, match=r"cannot read 's3://photos/nowhere"):
        reading("s3://photos/nowhere").build()


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow")  # in the libraries of the object store
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_parts_of_objects(object_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=object_store, **keys)
    for name, contents in (("numbers", bytes(range(200))), ("empty", b"")):
        client.put_object(Bucket="photos", Key=name, Body=contents)
    client.close()
    monkeypatch.setitem(fsspec.config.conf, "s3", {"key": "a", "secret": "b", "endpoint_url": object_store})
    monkeypatch.setattr(storage, "_PART_BYTES", 90)
    storage.configure(retries=0, cache_folder=tmp_path / "cache")
    for _ in range(2):
        assert storage.read("s3://photos/numbers").tolist() == list(range(200))
        assert storage.read("s3://photos/numbers", 20, 30).tolist() == list(range(20, 50))
        assert storage.read("s3://photos/numbers", 190).tolist() == list(range(190, 200))
        assert storage.read("s3://photos/empty").size == 0
        assert Path(storage.local_copy("s3://photos/numbers")).read_bytes() == bytes(range(200))
    with pytest.raises(ReaderError, match="ends before byte 230"):
        storage.read("s3://photos/numbers", 180, 50)
    with (
        limits.applied(limits.as_limits({"max_sample_bytes": 100})),
        pytest.raises(LimitError, match="max_sample_bytes"),
    ):
        storage.read("s3://photos/numbers", 1)


def test_other_storages_have_the_same_limit() -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/limited/numbers", bytes(200))
    try:
        assert storage.read("memory://limited/numbers").size == 200
        with (
            limits.applied(limits.as_limits({"max_sample_bytes": 100})),
            pytest.raises(LimitError, match="max_sample_bytes"),
        ):
            storage.read("memory://limited/numbers")
    finally:
        system.rm("/limited", recursive=True)


def test_a_cache_whose_folder_is_deleted_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deleting(path: Path, *_: object, **__: object) -> None:
        path.parent.rmdir()
        raise FileNotFoundError(2, "No such file or directory", str(path))

    cache = disk_cache.DiskCache(str(tmp_path / "cache"), 1 << 20)
    path = cache.entry_path("key")
    with monkeypatch.context() as patched:
        patched.setattr(disk_cache, "write_whole", deleting)
        cache.write_entry(path, b"one")
    assert cache.is_writable
    cache.write_entry(path, b"two")
    found = cache.read(path)
    assert found is not None
    assert found.tobytes() == b"two"
