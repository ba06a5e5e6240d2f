"""Ray Data and Ray Train with pipelines."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import fn, types
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, GraphError
from dalify.pipeline import pipeline_def
from tests.helpers.frameworks import imported
from tests.helpers.photo_pipelines import EPOCH, batches, mean_of, photos

ray = imported("ray")
imported("ray.data")
imported("ray.train.torch")
from dalify.plugin.ray import PipelineMapper, RayPipeline, RayPool, pipeline_datasource  # noqa: E402
from tests.helpers.ray_cluster import RayCluster  # noqa: E402


def decoded(encoded: Any) -> Any:
    """Return small images of JPEG files."""
    images = fn.decoders.image(encoded)
    return fn.resize(images, size=[8, 9]), images


def test_a_pipeline_over_columns(ray_cluster: RayCluster, photo_list: list[tuple[Path, int]]) -> None:
    ray_cluster.fill_up()
    rows = [{"file": path.read_bytes(), "number": number} for number, (path, _) in enumerate(photo_list)]
    found = (
        ray.data.from_items(rows, override_num_blocks=2)
        .map_batches(
            _WithNumber,
            fn_constructor_args=(decoded, ["file"], ["small", "image"]),
            fn_constructor_kwargs={"batch_size": 5, "num_threads": 1},
            batch_size=5,
            concurrency=1,
        )
        .take_all()
    )
    assert sorted(row["number"] for row in found) == list(range(len(rows)))
    for row in found:
        image = np.asarray(Image.open(io.BytesIO(rows[row["number"]]["file"])).convert("RGB"))
        assert row["image"].shape == image.shape
        np.testing.assert_allclose(row["image"].astype(float), image, atol=3)
        assert row["small"].shape == (8, 9, 3)


class _WithNumber(PipelineMapper):
    """Adds a column to those of the pipeline."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        return {**super().__call__(batch), "number": batch["number"]}


def test_a_column_that_is_not_there() -> None:
    mapper = PipelineMapper(decoded, ["file"], ["small", "image"], batch_size=2)
    with pytest.raises(ArgumentValueError, match="no column 'file'; it has number"):
        mapper({"number": np.arange(2)})
    with pytest.raises(ArgumentValueError, match="returns 2 outputs, and outputs= names 1"):
        PipelineMapper(decoded, ["file"], ["small"], batch_size=2)


def augmented(number: Any) -> Any:
    """Return random numbers of each kind: without inputs, in a branch, and per element."""
    chance = fn.random.coin_flip(probability=0.5)
    if chance:
        stddev = fn.random.uniform(range=[1.0, 2.0])
        noisy = fn.noise.gaussian(number, stddev=stddev)
    else:
        noisy = number - fn.random.uniform(range=[0.0, 1.0], shape=[3])
    return noisy, fn.random.uniform(range=[-1.0, 1.0])


def expected_rows(values: np.ndarray[Any, Any], seed: int) -> list[tuple[bytes, bytes]]:
    """Return the rows of one batch of all samples, by a pipeline in this process."""

    @pipeline_def(batch_size=len(values), num_threads=1, seed=seed, enable_conditionals=True)
    def whole():
        return augmented(fn.external_source(name="value"))

    noisy, drawn = whole().run(value=values)
    return [(noisy.at(row).tobytes(), drawn.at(row).tobytes()) for row in range(len(values))]


class _WithIdentity(PipelineMapper):
    """Keeps the column of the row's number."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        return {**super().__call__(batch), "id": batch["id"]}


@pytest.mark.parametrize("options", [{}, {"num_threads": 3}, {"processes": 2}], ids=["plain", "threads", "processes"])
def test_random_numbers_of_a_row_do_not_depend_on_its_batch(options: dict[str, Any]) -> None:
    values = np.arange(36, dtype=np.float32).reshape(12, 3)
    expected = expected_rows(values, 7)
    assert len(set(expected)) == 12
    assert all(one != other for one, other in zip(expected, expected_rows(values, 8), strict=True))
    mapper = PipelineMapper(
        augmented,
        ["value"],
        ["noisy", "drawn"],
        batch_size=8,
        row_numbers="id",
        seed=7,
        enable_conditionals=True,
        **{"num_threads": 1, **options},
    )
    for rows in ([11, 3], [0], [5, 4, 3, 2, 1, 0, 7, 6], [3, 3], [8, 9, 10]):
        found = mapper({"value": values[rows], "id": np.array(rows)})
        keys = [(one.tobytes(), other.tobytes()) for one, other in zip(found["noisy"], found["drawn"], strict=True)]
        assert keys == [expected[row] for row in rows]


def test_random_numbers_of_rows_do_not_depend_on_blocks_and_actors(ray_cluster: RayCluster) -> None:
    ray_cluster.fill_up()
    values = np.arange(36, dtype=np.float32).reshape(12, 3)
    expected = expected_rows(values, 7)
    for blocks, batch_size, actors in ((1, 12, 1), (4, 2, 2)):
        data = ray.data.from_numpy(values).rename_columns({"data": "value"}).repartition(blocks)
        found = (
            data.zip(ray.data.range(12, override_num_blocks=blocks))
            .map_batches(
                _WithIdentity,
                fn_constructor_args=(augmented, ["value"], ["noisy", "drawn"]),
                fn_constructor_kwargs={
                    "batch_size": 12,
                    "num_threads": 1,
                    "seed": 7,
                    "row_numbers": "id",
                    "enable_conditionals": True,
                },
                batch_size=batch_size,
                concurrency=actors,
            )
            .take_all()
        )
        keys = {row["id"]: (row["noisy"].tobytes(), np.float32(row["drawn"]).tobytes()) for row in found}
        assert [keys[row] for row in range(12)] == expected


def test_invalid_row_numbers() -> None:
    with pytest.raises(ArgumentValueError, match="row_numbers has no effect without a seed"):
        PipelineMapper(decoded, ["file"], ["small", "image"], batch_size=2, row_numbers="id")
    mapper = PipelineMapper(
        augmented, ["value"], ["a", "b"], batch_size=2, row_numbers="id", seed=1, enable_conditionals=True
    )
    value = np.zeros((2, 3), np.float32)
    with pytest.raises(ArgumentValueError, match="no column 'id'; it has value"):
        mapper({"value": value})
    with pytest.raises(ArgumentValueError, match=r"from 0 to 2\*\*32 - 1; got -1"):
        mapper({"value": value, "id": np.array([0, -1])})
    with pytest.raises(ArgumentValueError, match=r"got 4294967296"):
        mapper({"value": value, "id": np.array([1 << 32, 1])})
    with pytest.raises(ArgumentTypeError, match="one integer per row; got 1 axis of float64"):
        mapper({"value": value, "id": np.array([0.0, 1.0])})


def test_a_pipeline_as_a_source_of_rows(ray_cluster: RayCluster, photo_folder: Path) -> None:
    ray_cluster.fill_up()
    names = ["image", "floats", "label", "mean"]
    reference = photos(photo_folder, batch_size=5)  # the last batch has two photos of this epoch
    expected = [row for batch in batches(reference, EPOCH) for row in zip(*batch, strict=True)][:12]
    data = ray.data.read_datasource(
        pipeline_datasource(photos(photo_folder, batch_size=5), names), override_num_blocks=2
    )
    assert data.count() == 12
    found = data.take_all()
    assert len(found) == 12
    keys = {_key(row) for row in expected}
    assert {_key([row[name] for name in names]) for row in found} == keys


def _key(row: Any) -> bytes:
    return b"".join(np.ascontiguousarray(value).tobytes() for value in row)


def test_pipelines_that_cannot_be_sources(photo_folder: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def serial():
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.python_function(fn.decoders.image(encoded), function=mean_of)

    @pipeline_def(batch_size=2, num_threads=1)
    def endless():
        return fn.random.uniform(range=[0.0, 1.0])

    @pipeline_def(batch_size=2, num_threads=1)
    def sharded():
        return fn.readers.file(file_root=str(photo_folder), num_shards=2)

    with pytest.raises(GraphError, match="can only run in the program's process"):
        pipeline_datasource(serial(), ["mean"])
    with pytest.raises(ArgumentValueError, match="needs a pipeline with a reader"):
        pipeline_datasource(endless(), ["number"])
    with pytest.raises(ArgumentValueError, match="reads the whole epoch"):
        pipeline_datasource(sharded(), ["file", "label"])


def test_functions_that_cannot_be_sent_to_a_source(photo_folder: Path) -> None:
    lock = threading.Lock()

    @pipeline_def(batch_size=2, num_threads=1)
    def locked():
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.python_function(encoded, function=lambda value: value + lock.locked(), parallel=True)

    with pytest.raises(ArgumentTypeError, match="cannot be sent to a worker process") as raised:
        pipeline_datasource(locked(), ["bytes"])
    assert "sent to the workers of Ray" in str(raised.value)
    assert "py_start_method" not in str(raised.value)


@pipeline_def(batch_size=2, num_threads=1, seed=3)
def numbered(folder: Path):
    encoded, labels = fn.readers.file(
        file_root=str(folder), labels=list(range(12)), files=_files(folder), shard="auto", name="Reader"
    )
    return labels, fn.resize(fn.decoders.image(encoded), size=[4, 4], dtype=types.FLOAT)


def _files(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.glob("*/*.jpg"))]


def train(config: dict[str, Any]) -> None:
    """Train a linear network for an epoch, or continue in the middle of one."""
    import tempfile

    import torch

    from dalify.plugin.pytorch import DALIGenericIterator

    context = ray.train.get_context()
    pipe = RayPipeline(numbered(config["folder"]), pool=config["pool"])
    loader = DALIGenericIterator(pipe, ["label", "image"], reader_name="Reader")
    model = ray.train.torch.prepare_model(torch.nn.Linear(48, 1))
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            states = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
        loader.load_state_dict(states[context.get_world_rank()])
    labels = []
    for number, batch in enumerate(loader):
        labels += batch[0]["label"].flatten().tolist()
        model(batch[0]["image"].flatten(1)).mean().backward()
        if checkpoint is None and number == 1:
            break
    with tempfile.TemporaryDirectory() as folder:
        name = f"loader-{context.get_world_rank()}.json"
        Path(folder, name).write_text(json.dumps(loader.state_dict()))
        Path(config["seen"], f"{context.get_world_rank()}-{checkpoint is not None}.json").write_text(json.dumps(labels))
        ray.train.report({"labels": len(labels)}, checkpoint=ray.train.Checkpoint.from_directory(folder))
    pipe.close()


def test_ray_train(ray_cluster: RayCluster, photo_folder: Path, tmp_path: Path) -> None:
    """Two trainers on one pool, each with its shard; the second run continues where the first one has stopped."""
    ray_cluster.fill_up()
    scaling = ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}, trainer_resources={"CPU": 0})
    with RayPool(workers=1) as pool:
        config = {"folder": photo_folder, "pool": pool, "seen": str(tmp_path)}
        checkpoint = None
        for name in ("first", "second"):
            trainer = ray.train.torch.TorchTrainer(
                train,
                train_loop_config=config,
                scaling_config=scaling,
                run_config=ray.train.RunConfig(name=name, storage_path=str(tmp_path)),
                resume_from_checkpoint=checkpoint,
            )
            result = trainer.fit()
            checkpoint = result.checkpoint
        assert checkpoint is not None
    seen = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    for rank in range(2):
        assert seen[f"{rank}-False"] + seen[f"{rank}-True"] == list(range(6 * rank, 6 * rank + 6))
