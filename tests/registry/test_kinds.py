"""Kinds of operators: each has its own attributes, and every form of a kernel has a step."""

from __future__ import annotations

from itertools import combinations

import pytest

from dalify.executor.kernel_step import KernelStep
from dalify.executor.step_class import step_class
from dalify.registry import FedSource, Form, KernelOperator, Operator, Reader, Role, Structural, catalog

KINDS = (KernelOperator, Reader, FedSource, Structural)
# The argument of a reader is an entry, that of a decoder a sample.
SHARED = {"substitute", "substitute_function"}
NAMES = catalog.names()


def own_names(kind: type[Operator]) -> set[str]:
    """Return the public attributes that operators of a kind have in addition to those of all operators."""
    found = {name for name in catalog.names() if type(catalog.find(name)) is kind}
    names = set(dir(kind)).union(*(vars(catalog.find(name)) for name in found), vars(kind).get("__annotations__", ()))
    common = set(dir(Operator)).union(vars(Operator(lambda: None, name="plain")))
    return {name for name in names - common if not name.startswith("_")}


def test_attributes_are_those_of_one_kind() -> None:
    for one, other in combinations(KINDS, 2):
        assert own_names(one) & own_names(other) <= SHARED
    assert {"index", "read", "index_function", "read_function"} <= own_names(Reader)
    assert {"cpu_samples", "kernels", "prepare_function"} <= own_names(KernelOperator)
    assert own_names(FedSource) == {"feed", "feed_function"}
    assert own_names(Structural) == {"role"}


@pytest.mark.parametrize("name", NAMES)
def test_operators_have_what_their_kind_needs(name: str) -> None:
    operator = catalog.find(name)
    assert type(operator) in KINDS
    assert isinstance(operator, Reader) == ("readers." in name)
    if isinstance(operator, Reader):
        assert callable(operator.index_function)
        assert callable(operator.read_function.function)
    elif isinstance(operator, KernelOperator):
        assert "cpu" in operator.devices
        assert operator.mixed is None or catalog.find(operator.mixed.checked_by)


def test_every_role_has_an_operator() -> None:
    operators = {role: catalog.find(role.value) for role in Role}
    structural = [operator for operator in map(catalog.find, NAMES) if isinstance(operator, Structural)]
    assert structural == [operators.pop(operator.role) for operator in structural]
    assert all(isinstance(operator, KernelOperator) for operator in operators.values())


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("device", ["cpu", "gpu", "mixed"])
@pytest.mark.parametrize("is_emulated", [False, True])
def test_every_form_has_a_step(form: Form, device: str, is_emulated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_EMULATED_KERNELS", raising=False)
    operators = [operator for operator in map(catalog.find, NAMES) if isinstance(operator, KernelOperator)]
    found = [operator for operator in operators if device in operator.kernels and operator.kernels[device].form is form]
    decorator = "view" if form is Form.VIEW and device != "mixed" else f"{device}_{form.name.lower()}"
    assert bool(found) == hasattr(KernelOperator, decorator)
    for operator in found:
        assert issubclass(step_class(operator, device, is_emulated), KernelStep)
