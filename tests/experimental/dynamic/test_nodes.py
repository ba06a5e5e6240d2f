"""Nodes of torchdata return the batches of readers and calls, and continue from saved states."""

from __future__ import annotations

import importlib

import pytest

import dalify.experimental.dynamic as ndd
from dalify.base.errors import ArgumentValueError
from tests.experimental.dynamic.programs import shown

torchdata = pytest.importorskip("torchdata.nodes", reason="torchdata is not installed")


def _program(ndd, folder):
    nodes = importlib.import_module(f"{ndd.__name__}.pytorch.nodes")
    reader = nodes.Reader(ndd.readers.File, batch_size=5, file_root=folder)
    images = nodes.DictMapper(reader, lambda files: ndd.resize(ndd.decoders.image(files), size=(2, 2)))
    labels = torchdata.Loader(nodes.ToTorch(nodes.DictMapper(images, lambda label: label * 2, key="label")))
    single = nodes.Reader(ndd.readers.File, batch_size=None, output_names=["x", "y"], file_root=folder)
    return [
        [[(tuple(image.shape), label.tolist()) for image, label in labels] for _ in range(2)],
        [list(outputs) for outputs in torchdata.Loader(single)],
        dict(reader.get_metadata()),
    ]


def test_nodes_compared_with_dali(oracle, photo_folder):
    real = importlib.import_module("nvidia.dali.experimental.dynamic")
    assert shown(_program(ndd, str(photo_folder))) == shown(_program(real, str(photo_folder)))


def test_states(photo_folder):
    nodes = importlib.import_module("dalify.experimental.dynamic.pytorch.nodes")

    def make():
        reader = nodes.Reader(ndd.readers.File, batch_size=3, file_root=str(photo_folder), random_shuffle=True)
        sizes = nodes.DictMapper(reader, lambda files: ndd.batch([file.size for file in files]))
        return torchdata.Loader(nodes.ToTorch(nodes.DictMapper(sizes, lambda label: label + 1, key="label")))

    loader = make()
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    rest = [sizes.tolist() for sizes, _ in steps]
    assert len(rest) == 3
    other = make()
    other.load_state_dict(state)
    assert [sizes.tolist() for sizes, _ in other] == rest
    assert [sizes.tolist() for sizes, _ in other] == [sizes.tolist() for sizes, _ in loader]


def test_names_of_outputs(photo_folder):
    nodes = importlib.import_module("dalify.experimental.dynamic.pytorch.nodes")
    reader = nodes.Reader(ndd.readers.File, batch_size=3, output_names=["x"], file_root=str(photo_folder))
    with pytest.raises(ArgumentValueError, match="2 outputs"):
        next(reader)
