"""A pipeline as the transform of a torch dataset, and the evaluation of loaders."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, PipelineStateError
from dalify.plugin.pytorch import TorchPythonFunction, torch_utils
from dalify.plugin.pytorch.experimental import proxy
from dalify.plugin.pytorch.loader_evaluator import LoaderEvaluator


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def doubled():
    return fn.external_source(name="x") * 2


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def sum_and_difference():
    a, b = fn.external_source(name="a"), fn.external_source(name="b")
    return a + b, a - b


class Numbers(torch.utils.data.Dataset[Any]):
    def __init__(self, transform: Any, size: int = 12) -> None:
        self.transform = transform
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self.transform(np.full((2, 3), index, np.int32)), index


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_datasets(workers, deterministic):
    with proxy.DALIServer(doubled(), deterministic) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=workers)
        for _ in range(2):  # epochs
            batches = list(loader)
            assert len(batches) == 3
            for images, labels in batches:
                assert images.shape == (4, 2, 3)
                torch.testing.assert_close(images[:, 0, 0], 2 * labels.to(torch.int32))
            assert sorted(label for _, labels in batches for label in labels.tolist()) == list(range(12))


def test_a_loop_that_is_left_changes_no_other():
    with proxy.DALIServer(doubled()) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=1)
        for _ in loader:
            break
        for images, labels in loader:
            torch.testing.assert_close(images[:, 0, 0], 2 * labels.to(torch.int32))


@pytest.mark.parametrize("persistent", [False, True])
def test_results_of_a_loop_that_is_left_are_dropped(persistent):
    with proxy.DALIServer(doubled()) as server:
        data = Numbers(server.proxy, 64)
        loader = proxy.DataLoader(server, data, batch_size=4, num_workers=2, persistent_workers=persistent)
        for _ in range(3):
            next(iter(loader))
        assert len(list(loader)) == 16
        deadline = time.monotonic() + 10  # the message to the server may still be on its way
        while server._results and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not server._results


def test_results_of_other_loaders_are_kept():
    with proxy.DALIServer(doubled()) as server:
        ref = torch.utils.data.default_collate([server.proxy(np.int32([[7]]))])
        other = iter(torch.utils.data.DataLoader(Numbers(server.proxy), batch_size=4, num_workers=1))
        for _ in range(2):
            for _ in proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=1):
                break
            assert len(list(proxy.DataLoader(server, Numbers(server.proxy), batch_size=4))) == 3
        assert server.produce_data(ref).tolist() == [[[14]]]
        assert [server.produce_data(images)[0, 0, 0].item() for images, _ in other] == [0, 8, 16]


def test_loader_of_torch():
    """The references can be replaced."""
    with proxy.DALIServer(doubled()) as server:
        loader = torch.utils.data.DataLoader(Numbers(server.proxy), batch_size=4)
        for batch in loader:
            images, labels = server.produce_data(batch)
            torch.testing.assert_close(images[:, 0, 0], 2 * labels.to(torch.int32))


def test_several_inputs_and_outputs():
    with proxy.DALIServer(sum_and_difference()) as server:
        rows = []
        for index in range(4):
            a, b = np.float32([index]), np.float32([10])
            rows.append((a, b, *server.proxy(a=a, b=b)))
        a, b, plus, minus = server.produce_data(torch.utils.data.default_collate(rows))
        torch.testing.assert_close(plus, a + b)
        torch.testing.assert_close(minus, a - b)


class Pair(NamedTuple):
    image: Any
    number: int


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_references_in_other_structures():
    with proxy.DALIServer(doubled()) as server:
        samples = [server.proxy(np.int32([index])) for index in range(3)]
        ref = torch.utils.data.default_collate(samples)
        holder = Holder([ref])
        found = server.produce_data({"pair": Pair(ref, 3), "holder": holder, "again": (ref, [1])})
        assert found["pair"].number == 3
        assert found["holder"] is holder
        for tensor in (found["pair"].image, holder.value[0], found["again"][0]):
            assert tensor.tolist() == [[0], [2], [4]]


def collated_backwards(samples: Any) -> Any:
    return torch.utils.data.default_collate([image for image, _ in samples][::-1])


def collated_in_a_holder(samples: Any) -> Any:
    return Holder(torch.utils.data.default_collate([image for image, _ in samples]))


def test_collate_functions():
    with proxy.DALIServer(doubled()) as server:
        data = Numbers(server.proxy)
        holders = list(proxy.DataLoader(server, data, batch_size=4, collate_fn=collated_in_a_holder))
        assert [holder.value[0, 0, 0].item() for holder in holders] == [0, 8, 16]
        with pytest.raises(ValueError, match="not in the order"):
            list(proxy.DataLoader(server, data, batch_size=4, collate_fn=collated_backwards))


def test_a_loader_runs_a_server_that_is_not_running():
    server = proxy.DALIServer(doubled())
    loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4)
    assert [labels.tolist() for _, labels in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert server.is_running
    del loader
    assert not server.is_running


def test_samples_that_do_not_fit_fail_their_batch():
    with proxy.DALIServer(doubled()) as server:
        samples = [server.proxy(np.zeros(shape, np.int32)) for shape in ((2,), (2, 2))]
        with pytest.raises(ValueError, match="sample 1 has 2 dimensions"):
            server.produce_data(torch.utils.data.default_collate(samples))


def test_errors_reach_the_batch_and_the_next_one_is_served():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def decoding():
        return fn.cast(fn.decoders.image(fn.external_source(name="x")), dtype=types.FLOAT)

    with proxy.DALIServer(decoding()) as server:
        for content in (b"no image", b"none either"):
            ref = torch.utils.data.default_collate([server.proxy(np.frombuffer(content, np.uint8))])
            with pytest.raises(RuntimeError, match="image"):
                server.produce_data(ref)


class Failing(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            raise ValueError("sample 5 is damaged")
        return super().__getitem__(index)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_failing_sample_fails_only_its_batch(workers, deterministic):
    with proxy.DALIServer(doubled(), deterministic) as server:
        batches = iter(torch.utils.data.DataLoader(Failing(server.proxy), batch_size=4, num_workers=workers))
        found = []
        for number in range(3):
            if number == 1:
                with pytest.raises(ValueError, match="sample 5 is damaged"):
                    next(batches)
                continue
            images, labels = server.produce_data(next(batches))
            torch.testing.assert_close(images[:, 0, 0], 2 * labels.to(torch.int32))
            found += labels.tolist()
        assert found == [0, 1, 2, 3, 8, 9, 10, 11]


def _lost() -> Any:
    raise ConnectionRefusedError


class Lost:
    """A tensor of a worker that ended."""

    def __reduce__(self) -> Any:
        return _lost, ()


def test_a_batch_of_a_worker_that_ended_changes_no_other():
    with proxy.DALIServer(doubled()) as server:
        server._requests.put(Lost())
        loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4)
        for images, labels in loader:
            torch.testing.assert_close(images[:, 0, 0], 2 * labels.to(torch.int32))


def test_mistakes():
    with pytest.raises(ArgumentTypeError, match="needs a pipeline"):
        proxy.DALIServer(doubled)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def without_inputs():
        return fn.random.uniform()

    with pytest.raises(PipelineStateError, match="no inputs"):
        proxy.DALIServer(without_inputs())
    server = proxy.DALIServer(sum_and_difference())
    with pytest.raises(PipelineStateError, match=r"Pass server\.proxy"):
        pickle.dumps(server)
    with pytest.raises(ValueError, match=r"proxy\(a=..., b=...\)"):
        server.proxy(1, 2)
    with pytest.raises(ArgumentValueError, match=r"proxy\(x\)"):
        proxy.DALIServer(doubled()).proxy(y=3)
    ref = torch.utils.data.default_collate([server.proxy(a=np.int32(1), b=np.int32(2))[0]])
    with pytest.raises(PipelineStateError, match="not running"):
        server.produce_data(ref)


def test_evaluated_loaders(tmp_path, capsys):
    data = torch.utils.data.DataLoader(Numbers(lambda x: x), batch_size=4)
    for mode in ("log", "replay"):
        loader = LoaderEvaluator(data, mode, num_cached_batches=2, metrics_file=str(tmp_path / mode))
        assert len(loader) == 3
        assert loader.get_metrics() == {}
        first = [labels.tolist() for _, labels in loader]
        expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        assert first == (expected if mode == "log" else [expected[1], expected[2], expected[1]])
        loader.save_metrics()
        loader.print_summary()
        metrics = json.loads((tmp_path / mode).read_text())
        assert metrics["total_batches"] == len(metrics["batch_times"]) == 3
        assert metrics["min_batch_time"] <= metrics["avg_batch_time"] <= metrics["max_batch_time"]
        assert metrics["cache_ready"] == (mode == "replay")
    assert "mode replay" in capsys.readouterr().out
    LoaderEvaluator(data).save_metrics()
    assert "no file name" in capsys.readouterr().out
    with pytest.raises(PipelineStateError, match="no cached batches"):
        iter(LoaderEvaluator(torch.utils.data.DataLoader(Numbers(lambda x: x, 0)), "replay"))


def test_functions_on_tensors():
    operator = TorchPythonFunction(lambda x: x * 3, num_outputs=1)
    assert (operator.device, operator.schema_name, operator.preserve) == ("cpu", "TorchPythonFunction", False)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline():
        x = fn.external_source(source=lambda: np.ones((2, 3), np.float32))
        with pytest.raises(ArgumentValueError, match="num_outputs was specified already"):
            operator(x, num_outputs=1)
        return operator(x)

    (output,) = pipeline().run()
    assert output.as_array().tolist() == [[3.0] * 3] * 2
    tensor = output.as_tensor()
    for copy in (False, True):
        found = torch_utils.to_torch_tensor(tensor, copy)
        assert found.tolist() == [[3.0] * 3] * 2
        assert (found.data_ptr() == tensor.data_ptr()) is not copy
