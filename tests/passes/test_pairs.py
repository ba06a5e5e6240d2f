"""Operators declare pairs of operators; passes do not contain their names."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from dalify import fn, passes, pipeline_def, types
from dalify.registry import KernelOperator, catalog

PASSES = Path(passes.__file__).parent
DECLARED = [
    (operator.name, pair)
    for operator in map(catalog.find, catalog.names())
    if isinstance(operator, KernelOperator)
    for pair in operator.pairs.items()
]


def test_declared_pairs_exist() -> None:
    assert {(name, *key) for name, (key, _) in DECLARED} == {
        ("crop", "resize", "merges"),
        ("color_twist", "crop_mirror_normalize", "merges"),
        ("resize", "_color_twist_normalize", "merges"),
        ("resize", "crop_mirror_normalize", "moves"),
        ("resize", "crop_mirror_normalize", "merges"),
        ("resize_crop_mirror", "crop_mirror_normalize", "merges"),
        ("_resize_crop", "crop_mirror_normalize", "merges"),
        ("random_resized_crop", "crop_mirror_normalize", "merges"),
        ("_decode_for_crop", "_random_resized_crop_normalize", "merges"),
        ("slice", "preemphasis_filter", "merges"),
        ("spectrogram", "mel_filter_bank", "merges"),
        ("_mel_spectrogram", "to_decibels", "merges"),
        ("_mel_spectrogram", "normalize", "merges"),
        ("decoders.image", "random_resized_crop", "narrows"),
        ("decoders.image", "resize_crop_mirror", "narrows"),
        ("decoders.image", "_resize_crop", "narrows"),
    }


@pytest.mark.parametrize(("name", "declared"), DECLARED)
def test_operators_of_pairs_have_the_arguments(name: str, declared: tuple) -> None:
    (consumer, _), pair = declared
    into = catalog.find(pair.into)
    assert set(pair.takes) <= set(catalog.find(consumer).parameters) & set(into.parameters)
    own = catalog.find(name).parameters
    assert set(own if pair.keeps is None else pair.keeps) - {"save_attrs"} <= set(into.parameters)


@pytest.mark.parametrize("module", ["fuse.py", "narrow.py", "pairs.py", "push_crop.py"])
def test_passes_name_no_operator_of_users(module: str) -> None:
    strings = {
        node.value for node in ast.walk(ast.parse((PASSES / module).read_text())) if isinstance(node, ast.Constant)
    }
    public = {name for name in catalog.names() if not name.rpartition(".")[2].startswith("_")}
    assert not strings & public


def test_a_pair_applies_only_to_its_operators() -> None:
    """The resize that another operator reads stays, in the same graph as one that is fused."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        image = fn.external_source(
            source=lambda: [np.full((9, 9, 3), 7, np.uint8)] * 2, layout="HWC", dtype=types.UINT8
        )
        fused = fn.crop_mirror_normalize(fn.resize(image, size=[6, 6]), crop=[4, 4])
        shared = fn.resize(image, size=[5, 5])
        return fused, shared, fn.crop_mirror_normalize(shared, crop=[2, 2]), fn.flip(fn.resize(image, size=[3, 3]))

    running = pipe()
    assert [batch.as_array().shape[1:] for batch in running.run()] == [(3, 4, 4), (5, 5, 3), (3, 2, 2), (3, 3, 3)]
    assert running.explain().count("computes only the window of") == 1
