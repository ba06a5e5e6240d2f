"""The TensorFlow plugin with the real TensorFlow and Keras: datasets, inputs of datasets, operations, memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, UnknownArgumentError
from tests.helpers.frameworks import addresses_of_outputs, bfloat16_ones, imported

tf = imported("tensorflow")
imported("keras")
from dalify.plugin import tf as plugin  # noqa: E402

Inputs = plugin.experimental.DALIDatasetWithInputs
Input = plugin.experimental.Input


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # Of Keras and TensorFlow about themselves; warnings of dalify remain errors.
        warnings.filterwarnings("ignore", module=r"(keras|tensorflow|tf_keras)\..*")
        warnings.filterwarnings("ignore", message=r".*shuffle=True.*")
        yield


@pipeline_def(batch_size=4, num_threads=2)
def counted(batches: int = 3) -> Any:
    def source(info: Any) -> tuple[np.ndarray, np.ndarray]:
        if info.iteration == batches:
            raise StopIteration
        return np.full((3, 2), info.idx_in_epoch, np.float32), np.array([info.idx_in_epoch], np.int64)

    return tuple(fn.external_source(source=source, batch=False, num_outputs=2))


@pipeline_def(batch_size=8, num_threads=2, seed=4)
def sums() -> Any:
    x = fn.random.uniform(range=(-1, 1), shape=(3,))
    return x, fn.reductions.sum(x, keep_dims=True)


TYPES = (tf.float32, tf.int64)


def labels(dataset: Any) -> list[list[int]]:
    return [batch[1].numpy().ravel().tolist() for batch in dataset]


def test_the_dataset_begins_again_with_each_iterator() -> None:
    dataset = plugin.DALIDataset(counted(), TYPES, ((None, 3, 2), (None, 1)))
    assert isinstance(dataset, tf.data.Dataset)
    wanted = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert labels(dataset) == wanted
    assert labels(dataset) == wanted
    first, second = iter(dataset), iter(dataset)
    assert next(first)[1].numpy().ravel().tolist() == next(second)[1].numpy().ravel().tolist() == wanted[0]


def test_dataset_is_one_of_tensorflow() -> None:
    dataset = plugin.DALIDataset(counted(), TYPES, ((None, 3, 2), (None, 1)))
    assert labels(dataset.take(1)) == [[0, 1, 2, 3]]
    assert labels(dataset.skip(1).prefetch(2)) == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert [int(n) for n in dataset.map(lambda x, y: tf.reduce_sum(y))] == [6, 22, 38]
    assert len(labels(dataset.repeat(2))) == 6
    assert labels(dataset.with_options(plugin.dataset_options())) == labels(dataset)
    assert all(
        works()
        for works in (
            plugin.dataset_compatible_tensorflow,
            plugin.dataset_inputs_compatible_tensorflow,
            plugin.dataset_distributed_compatible_tensorflow,
        )
    )


def test_types_and_shapes_are_found() -> None:
    spec = plugin.DALIDataset(counted()).element_spec
    assert [(each.dtype, each.shape.as_list()) for each in spec] == [
        (tf.float32, [None, None, None]),
        (tf.int64, [None, None]),
    ]


def test_one_output_and_a_tuple_of_one() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def one() -> Any:
        return fn.external_source(source=[np.zeros((2, 3), np.uint8)])

    (alone,) = plugin.DALIDataset(one(), tf.uint8)
    assert alone.shape == (2, 3)
    ((inside,),) = plugin.DALIDataset(one(), (tf.uint8,), ((2, 3),))
    assert inside.shape == (2, 3)


def test_dimensions_of_one_are_dropped() -> None:
    (first, *_) = plugin.DALIDataset(counted(), TYPES, ((4, 3, 2), (4)))
    assert first[1].shape == (4,)
    (first, *_) = plugin.DALIDataset(counted(), TYPES, ((3, 2), ()), batch_size=1)
    assert first[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("dtypes", "shapes", "text"),
    [
        ((tf.float32, tf.int32), None, "output 1 has elements of int64, but output_dtypes specifies int32"),
        (TYPES, ((None, 3, 3), (None, 1)), r"output 0 has the shape \(4, 3, 2\), but output_shapes specifies"),
    ],
)
def test_other_types_and_shapes(dtypes: Any, shapes: Any, text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        next(iter(plugin.DALIDataset(counted(), dtypes, shapes)))


def test_ragged_samples() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def ragged() -> Any:
        return fn.external_source(source=lambda: [np.zeros(1, np.float32), np.zeros(2, np.float32)])

    with pytest.raises(tf.errors.InvalidArgumentError, match="samples of output 0 have different shapes"):
        next(iter(plugin.DALIDataset(ragged(), tf.float32)))


def test_options_take_the_place_of_those_of_the_pipeline() -> None:
    dataset = plugin.DALIDataset(counted(), TYPES, batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=1)
    assert labels(dataset) == [[0, 1], [2, 3], [4, 5]]


def test_mistakes() -> None:
    with pytest.raises(ArgumentTypeError, match="needs a pipeline; got function"):
        plugin.DALIDataset(counted, TYPES)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="output_dtypes has 1 type, but the pipeline has 2 outputs"):
        plugin.DALIDataset(counted(), tf.float32)
    with pytest.raises(ArgumentValueError, match="a tuple with one shape for each of the 2 outputs"):
        plugin.DALIDataset(counted(), TYPES, (None, 3, 2))
    with pytest.raises(UnknownArgumentError, match="does not accept input_datasets"):
        plugin.DALIDataset(counted(), TYPES, input_datasets={})
    with pytest.raises(ArgumentValueError, match="old name of output_dtypes"):
        plugin.DALIDataset(counted(), TYPES, dtypes=TYPES)
    with pytest.warns(DeprecationWarning, match="dtypes is now output_dtypes"):
        plugin.DALIDataset(counted(), dtypes=TYPES)


def test_an_error_of_the_pipeline_keeps_its_text() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def broken() -> Any:
        return fn.decoders.image(fn.external_source(source=lambda: np.zeros((2, 9), np.uint8)))

    with pytest.raises(tf.errors.OpError, match=r"decoders\.image"):
        next(iter(plugin.DALIDataset(broken(), tf.uint8)))


# -- training ----------------------------------------------------------------------------------------------------------


def model() -> Any:
    import keras

    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.layers.Dense(1)])
    made.compile(optimizer=keras.optimizers.SGD(0.2), loss="mse")
    return made


def test_fit() -> None:
    dataset = plugin.DALIDataset(sums(), (tf.float32, tf.float32), ((8, 3), (8, 1)))
    history = model().fit(dataset, epochs=3, steps_per_epoch=60, verbose=0).history["loss"]
    assert history[-1] < 1e-4 < history[0]


def test_fit_under_a_strategy() -> None:
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        trained = model()
    distributed = strategy.distribute_datasets_from_function(
        lambda context: plugin.DALIDataset(sums(), (tf.float32, tf.float32), ((8, 3), (8, 1)))
    )
    history = trained.fit(distributed, epochs=2, steps_per_epoch=60, verbose=0).history["loss"]
    assert history[-1] < 1e-3


def test_train_on_batches_of_the_iterator() -> None:
    trained = model()
    loader = plugin.DALIClassificationIterator(sums(), size=8 * 100)
    losses = [float(trained.train_on_batch(batch["data"], batch["label"])) for (batch,) in loader]
    assert len(losses) == 100
    assert losses[-1] < losses[0] / 10


# -- inputs ------------------------------------------------------------------------------------------------------------


@pipeline_def(batch_size=4, num_threads=1)
def with_input() -> Any:
    return fn.external_source(name="x") * 2


def test_input_of_samples() -> None:
    dataset = Inputs(with_input(), tf.int64, (None,), input_datasets={"x": tf.data.Dataset.range(10)})
    for _ in range(2):
        assert [batch.numpy().tolist() for batch in dataset] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]


def test_input_of_batches() -> None:
    batches = tf.data.Dataset.range(10).batch(3)
    dataset = Inputs(with_input(), tf.int64, input_datasets={"x": Input(batches, batch=True)})
    assert [batch.numpy().tolist() for batch in dataset] == [[0, 2, 4], [6, 8, 10], [12, 14, 16], [18]]
    dataset = Inputs(with_input(), tf.int64, input_datasets={"x": Input(batches, batch=None)})  # as the source says
    assert len(list(dataset)) == 4


def test_ragged_input_and_its_layout() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def resized() -> Any:
        return fn.resize(fn.external_source(name="images"), size=(2, 2))

    images = tf.data.Dataset.range(1, 5).map(lambda n: tf.cast(tf.fill([n, 2 * n, 3], n), tf.uint8))
    dataset = Inputs(resized(), tf.uint8, input_datasets={"images": Input(images, layout="HWC")})
    assert [batch.numpy()[:, 0, 0, 0].tolist() for batch in dataset] == [[1, 2], [3, 4]]


def test_two_inputs_end_with_the_shorter() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def added() -> Any:
        return fn.external_source(name="a") + fn.external_source(name="b")

    inputs = {"a": tf.data.Dataset.range(6), "b": tf.data.Dataset.range(100).map(lambda n: n * 10)}
    assert [batch.numpy().tolist() for batch in Inputs(added(), tf.int64, input_datasets=inputs)] == [
        [0, 11, 22, 33],
        [44, 55],
    ]


def test_sources_and_inputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def mixed() -> Any:
        ones = fn.external_source(source=lambda number: np.full(2, number, np.int64))
        return fn.external_source(name="x") + ones * 100

    dataset = Inputs(mixed(), tf.int64, input_datasets={"x": tf.data.Dataset.range(5)})
    assert [batch.numpy().tolist() for batch in dataset.take(2)] == [[0, 1], [102, 103]]


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ({"y": tf.data.Dataset.range(3)}, ArgumentValueError, "datasets has the name 'y'.*without a source are: 'x'"),
        ({}, ArgumentValueError, "'x' of the pipeline has no source and no dataset"),
        ({"x": [1, 2]}, ArgumentTypeError, "must be a tf.data.Dataset; got list"),
        ([], ArgumentTypeError, "must be a dictionary with names as keys"),
    ],
)
def test_mistakes_in_inputs(inputs: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Inputs(with_input(), tf.int64, input_datasets=inputs)


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (tf.data.Dataset.range(9).batch(9), "returned a batch of 9 samples, but the maximum of the pipeline is 4"),
        (tf.data.Dataset.range(9).map(lambda n: (n, n)), "have several tensors"),
    ],
)
def test_elements_that_do_not_fit(dataset: Any, text: str) -> None:
    with pytest.raises(tf.errors.OpError, match=text):
        next(iter(Inputs(with_input(), tf.int64, input_datasets={"x": Input(dataset, batch=True)})))


# -- operations --------------------------------------------------------------------------------------------------------


def test_operation_in_a_graph() -> None:
    with tf.Graph().as_default():
        images, numbers = plugin.DALIIterator()(
            pipeline=counted(), shapes=[(4, 3, 2), (4, 1)], dtypes=[tf.float32, tf.int64]
        )
        assert images.shape == (4, 3, 2)
        with tf.compat.v1.Session() as session:
            found = [session.run(numbers).ravel().tolist() for _ in range(3)]
            assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(numbers)


def test_operation_at_once_and_of_a_text() -> None:
    text = plugin.serialize_pipeline(sums())
    operation = plugin.DALIRawIterator()
    first = operation(serialized_pipeline=text, dtypes=[tf.float32, tf.float32], batch_size=2)
    assert [tensor.shape for tensor in first] == [(2, 3), (2, 1)]
    pipe = counted()
    found = [operation(pipeline=pipe, dtypes=TYPES)[1].numpy().ravel().tolist() for _ in range(2)]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ArgumentTypeError, "either pipeline"),
        ({"pipeline": "pipe", "dtypes": [tf.int64]}, ArgumentValueError, "dtypes has 1 types"),
        ({"pipeline": "pipe", "dtypes": TYPES, "shapes": [(4,)]}, ArgumentValueError, "shapes has 1 entry"),
        (
            {"pipeline": "pipe", "dtypes": TYPES, "sparse": [True]},
            ArgumentValueError,
            "does not support sparse tensors",
        ),
    ],
)
def test_mistakes_in_operations(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    if "pipeline" in arguments:
        arguments = {**arguments, "pipeline": counted()}
    with pytest.raises(error, match=text):
        plugin.DALIIterator()(**arguments)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_tensors_have_the_memory_of_the_pipeline() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def images() -> Any:
        return fn.copy(fn.external_source(source=lambda: np.ones((2, 64, 64, 3), np.float32)))

    pipe = images()
    addresses = addresses_of_outputs(pipe)
    (batch,) = next(plugin.DALIGenericIterator(pipe, ["x"]))
    again = np.from_dlpack(batch["x"]) if hasattr(batch["x"], "__dlpack__") else batch["x"].numpy()
    assert again.__array_interface__["data"][0] == addresses[0]


def test_bfloat16() -> None:
    batch = next(plugin.DALIGenericIterator(bfloat16_ones(), ["x"]))[0]["x"]
    assert batch.dtype == tf.bfloat16
    assert float(tf.reduce_sum(batch)) == 24
    (first,) = plugin.DALIDataset(bfloat16_ones(), tf.bfloat16).take(1)
    assert first.dtype == tf.bfloat16
