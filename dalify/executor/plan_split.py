"""Divides the stages of a plan between worker processes and this process.

Serial user functions, the device, the parsing for it, and stages that depend on them run in this process; all others
run in worker processes. Both plans have the same slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dalify.executor.device_samples_step import ParseStep
from dalify.executor.plan import Plan, Stage
from dalify.executor.reader_step import ReaderStep
from dalify.executor.steps import walk
from dalify.graph import Branch
from dalify.registry import Role


class SplitPlan(NamedTuple):
    """A plan in two parts with common slots.

    Attributes:
        remote: the part that other processes compute; its outputs are the slots that they return.
        local: the part that this process computes afterwards.
        inputs: slots of external sources that are sent with the number of a batch.
    """

    remote: Plan
    local: Plan
    inputs: tuple[int, ...]


def split_plan(plan: Plan) -> SplitPlan:
    """Return the two parts of a plan."""
    own: list[Stage] = []
    others: list[Stage] = []
    own_slots: set[int] = set()
    own_branches: set[Branch] = set()
    for stage in plan.stages:
        is_own = (
            stage.is_serial
            or stage.kind == "device"
            or any(isinstance(step, ParseStep) for step in stage.steps)
            or not own_slots.isdisjoint(stage.reads)
            or any(not own_branches.isdisjoint(step.node.branches()) for step in stage.steps)
        )
        (own if is_own else others).append(stage)
        if is_own:
            own_slots.update(slot for step in stage.steps for slot in step.outputs)
            known = {branch for other in others for branch in _split_in(other)}
            own_branches.update(branch for branch in _split_in(stage) if branch not in known)
    published = {slot for stage in others for slot in stage.publishes}
    wanted = {*plan.outputs, *(slot for stage in own for slot in stage.reads)}
    externals = {slot for _, slots in plan.externals for slot in slots}
    read = {slot for stage in others for slot in stage.reads}
    remote = replace(
        plan,
        stages=others,
        outputs=tuple(sorted(wanted & published)),
        readers=_readers_in(plan, others),
        externals=[],
        pinned=set(),
    )
    local = replace(plan, stages=own, readers=_readers_in(plan, own))
    return SplitPlan(remote, local, tuple(sorted(externals & read)))


def _split_in(stage: Stage) -> Iterator[Branch]:
    """Yield the branches whose samples a stage splits."""
    for step in stage.steps:
        if step.node.role is Role.SPLIT and step.node.branch is not None:
            yield step.node.branch


def _readers_in(plan: Plan, stages: list[Stage]) -> dict[int, ReaderStep]:
    steps = {id(step) for stage in stages for step in walk(stage.steps)}
    return {slot: reader for slot, reader in plan.readers.items() if id(reader) in steps}
