"""Pipelines for a Triton server: marked, serialized, loaded, run."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentTypeError, PipelineStateError
from dalify.pipeline import Pipeline
from dalify.plugin.triton import autoserialize, invoke_autoserialize


@autoserialize
@pipeline_def(batch_size=4, num_threads=1)
def doubled() -> Any:
    return fn.external_source(name="DALI_INPUT_0") * 2


@pipeline_def(batch_size=4, num_threads=1)
def other() -> Any:
    return fn.external_source(name="DALI_INPUT_0")


def module(**members: Any) -> ModuleType:
    made = ModuleType("model")
    made.__dict__.update(members)
    return made


def test_serialize_load_run(tmp_path: Path) -> None:
    invoke_autoserialize(module(doubled=doubled, alias=doubled, other=other), tmp_path / "model.dali")
    pipe = Pipeline.deserialize(filename=tmp_path / "model.dali", batch_size=2)
    pipe.feed_input("DALI_INPUT_0", np.arange(2, dtype=np.int32))
    assert pipe.run()[0].as_array().tolist() == [0, 2]


def test_the_mark_equals_dali() -> None:
    assert doubled._is_autoserialize is True
    assert doubled._is_pipeline_def is True


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="requires the result of pipeline_def"):
        autoserialize(lambda: None)
    with pytest.raises(PipelineStateError, match="found: none"):
        invoke_autoserialize(module(other=other), tmp_path / "model.dali")
    second = autoserialize(pipeline_def(batch_size=1, num_threads=1)(lambda: fn.constant(idata=1)))
    with pytest.raises(PipelineStateError, match="found: doubled, <lambda>"):
        invoke_autoserialize(module(doubled=doubled, second=second), tmp_path / "model.dali")
