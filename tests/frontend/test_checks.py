"""The complete message of every error of the rewriter."""

# ruff: noqa: C416, E501, SIM108, RET503, RET504, F841 -- the programs are what is tested

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dalify import types
from dalify.base.errors import DalifyError
from tests.frontend.fake_graph import traced

BOX = SimpleNamespace(items=[1], value=3)
COLLECTED: list[Any] = []


def add(values, x):
    values.append(x)


def while_loop(x):
    while x > 1:
        x = x - 1


def for_loop(x):
    for part in x:
        print(part)


def comprehension(x):
    return [part for part in x]


def comprehension_filter(x):
    kept = [i for i in range(3) if x > i]
    return kept


def assertion(x):
    assert x > 0, "positive"


def membership(x):
    return 1 if x in (1, 2) else 0


def membership_in_a_node(x):
    return 5 not in x


def match_statement(x):
    match x:
        case 1:
            return 2


def match_guard(x):
    match 3:
        case 3 if x > 1:
            return 2


def break_out(x):
    for i in range(3):
        if x > i:
            break


def return_from_a_loop(x):
    for i in range(3):
        if x > i:
            return i
    return x


def continue_in_a_with(x):
    for i in range(3):
        with nullcontext():
            if x > i:
                continue
            x = x + 1
        x = x + 2


def append(x):
    values = []
    if x > 1:
        values.append(x)
    return values


def append_in_a_helper(x):
    if x > 1:
        add(COLLECTED, x)


def append_to_an_attribute(x):
    if x > 1:
        BOX.items.append(x)


def update_in_an_expression(x):
    found = {}
    return x > 1 and found.update(a=x)


def in_place(x):
    values = [1]
    if x > 1:
        values += [x]
    return values


def array_element(x):
    array = np.zeros(3)
    if x > 1:
        array[0] = 1
    return array


def list_slice(x):
    values = [1, 2, 3]
    if x > 1:
        values[:2] = [x]
    return values


def list_deletion(x):
    values = [1, 2, 3]
    if x > 1:
        del values[0]
    return values


def raising(x):
    if x > 1:
        raise ValueError("too large")
    return x


def yielding(x):
    def parts():
        if x > 1:
            yield 1

    return list(parts())


def only_in_the_body(x):
    if x > 1:
        y = x + 1
    return y


def only_in_the_else(x):
    if x > 1:
        pass
    else:
        y = x + 1
    return y


def only_in_one_elif(x):
    if x > 1:
        y = 1
    elif x > 0:
        z = 2
    else:
        y = z = 3
    return y


def deleted(x):
    y = x
    if x > 1:
        del y
    return y


def structures(x):
    if x > 1:
        y = {"a": x, "b": [x, 1]}
    else:
        y = {"a": x}
    return y


def none(x):
    if x > 1:
        y = x
    else:
        y = None
    return y


def text(x):
    return x if x > 1 else "small"


def enumerations(x):
    kind = types.FLOAT
    if x > 1:
        kind = types.INT32
    return kind


def functions(x):
    if x > 1:
        change = len
    else:
        change = max
    return change(x)


def missing_return(x):
    if x > 1:
        return x


def missing_return_first(x):
    if x > 1:
        x = 3
    else:
        return x


def any_of(x):
    return any([x > 1, x > 2])


def largest(x):
    return max(x, 3)


def boolean(x):
    return bool(x)


def number_on_the_right(x):
    return x > 1 and 3


def walrus(x):
    return x > 1 and (y := x + 1) > y


def attribute(x):
    if x > 1:
        BOX.value = None
    return BOX.value


def item(x):
    table = {}
    if x > 1:
        table["k"] = x
    return table["k"] + 1


def on_the_gpu(x):
    x.edge.device = "gpu"
    if x:
        x = x + 1
    return x


EXPECTED: dict[Any, str] = {
    while_loop: """
ConditionError: the condition of this `while` is a graph value, so the number of iterations would differ per sample.
  train.py:1 in while_loop()
      while x > 1:
  Use a `for` loop with a fixed number of iterations and an `if` in it.
""",
    for_loop: """
UnsupportedSyntaxError: a graph value cannot be iterated over: its number of elements is not known yet, and may differ per sample.
  train.py:1 in for_loop()
      for part in x:
  Use an operator on the whole value, or index it with a range of known length: x[i] for i in range(3).
""",
    comprehension: """
UnsupportedSyntaxError: a graph value cannot be iterated over: its number of elements is not known yet, and may differ per sample.
  train.py:1 in comprehension()
      return [part for part in x]
  Use an operator on the whole value, or index it with a range of known length: x[i] for i in range(3).
""",
    comprehension_filter: """
ConditionError: a graph value cannot be the `if` of a comprehension: the number of elements would differ per sample.
  train.py:1 in comprehension_filter()
      kept = [i for i in range(3) if x > i]
  Keep all elements and choose their values: [a if condition else b for …].
""",
    assertion: """
ConditionError: a graph value cannot be asserted: it has no value while the pipeline is defined.
  train.py:1 in assertion()
      assert x > 0, "positive"
  Check the outputs of the pipeline, or check each sample in a Python function with fn.python_function.
""",
    membership: """
UnsupportedSyntaxError: `in` cannot be used with a graph value: the result differs per sample.
  train.py:1 in membership()
      return 1 if x in (1, 2) else 0
  Write the comparisons out, (x == 1) | (x == 2), or reduce them: fn.reductions.max(x == 1).
""",
    membership_in_a_node: """
UnsupportedSyntaxError: `in` cannot be used with a graph value: the result differs per sample.
  train.py:1 in membership_in_a_node()
      return 5 not in x
  Write the comparisons out, (x == 1) | (x == 2), or reduce them: fn.reductions.max(x == 1).
""",
    match_statement: """
UnsupportedSyntaxError: a graph value cannot be the subject of `match`: it has no value while the pipeline is defined.
  train.py:1 in match_statement()
      match x:
  Write `if x == 1: … elif x == 2: …`, which works on graph values.
""",
    match_guard: """
ConditionError: a graph value cannot be the guard of a `case`: the selected case would differ per sample.
  train.py:2 in match_guard()
      case 3 if x > 1:
  Use an `if` inside the case.
""",
    break_out: """
UnsupportedSyntaxError: `break` under a condition on a graph value (train.py:2 in break_out()): some samples would leave the loop, others would not.
  train.py:3 in break_out()
      break
  Let the loop run to its end, and put its body under `if not done:`, where `done` is a graph value.
""",
    return_from_a_loop: """
UnsupportedSyntaxError: `return` under a condition on a graph value (train.py:2 in return_from_a_loop()): some samples would return from the function, others would not.
  train.py:3 in return_from_a_loop()
      return i
  Assign the result to a variable, and return it at the end of the function.
""",
    continue_in_a_with: """
UnsupportedSyntaxError: `continue` under a condition on a graph value (train.py:3 in continue_in_a_with()): some samples would continue with the next iteration, others would not.
  train.py:4 in continue_in_a_with()
      continue
  Put what follows the `continue` under an `if` on the opposite condition.
""",
    append: """
UnsupportedSyntaxError: list.append() under a condition on a graph value (train.py:2 in append()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:3 in append()
      values.append(x)
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    append_in_a_helper: """
UnsupportedSyntaxError: list.append() under a condition on a graph value (train.py:1 in append_in_a_helper()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:-75 in add()
      values.append(x)
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    append_to_an_attribute: """
UnsupportedSyntaxError: list.append() under a condition on a graph value (train.py:1 in append_to_an_attribute()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:2 in append_to_an_attribute()
      BOX.items.append(x)
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    update_in_an_expression: """
UnsupportedSyntaxError: dict.update() under a condition on a graph value (train.py:2 in update_in_an_expression()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:2 in update_in_an_expression()
      return x > 1 and found.update(a=x)
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    in_place: """
UnsupportedSyntaxError: an operator such as `+=` on this list under a condition on a graph value (train.py:2 in in_place()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:3 in in_place()
      values += [x]
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    array_element: """
UnsupportedSyntaxError: assigning to elements of this ndarray under a condition on a graph value (train.py:2 in array_element()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:3 in array_element()
      array[0] = 1
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    list_slice: """
UnsupportedSyntaxError: assigning to elements of this list under a condition on a graph value (train.py:2 in list_slice()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:3 in list_slice()
      values[:2] = [x]
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    list_deletion: """
UnsupportedSyntaxError: deleting elements of this list under a condition on a graph value (train.py:2 in list_deletion()) changes an object from outside the branch: both branches are traced, so the change would apply to every sample.
  train.py:3 in list_deletion()
      del values[0]
  Assign a value to a variable in each branch, and change the object after the `if`.
""",
    raising: """
UnsupportedSyntaxError: `raise` under a condition on a graph value: both branches are traced, so the error would always be raised.
  train.py:2 in raising()
      raise ValueError("too large")
  Sample values are known only at run time: check it in a Python function with fn.python_function.
""",
    yielding: """
UnsupportedSyntaxError: `yield` under a condition on a graph value: both branches are traced, so every sample would be yielded.
  train.py:3 in parts()
      yield 1
  Assign the value to a variable in both branches and yield it after the `if`.
""",
    only_in_the_body: """
DivergentBranchesError: `y` has a value only if the condition of this `if` is true; if it is false, it has no value.
  train.py:1 in only_in_the_body()
      if x > 1:
  It is assigned at train.py:2 in only_in_the_body():  y = x + 1
  Assign `y` in both branches, or give it a value before the `if`.
""",
    only_in_the_else: """
DivergentBranchesError: `y` has a value only if the condition of this `if` is false; if it is true, it has no value.
  train.py:1 in only_in_the_else()
      if x > 1:
  It is assigned at train.py:4 in only_in_the_else():  y = x + 1
  Assign `y` in both branches, or give it a value before the `if`.
""",
    only_in_one_elif: """
DivergentBranchesError: `y` has a value only if the condition of this `elif` is false; if it is true, it has no value.
  train.py:3 in only_in_one_elif()
      elif x > 0:
  It is assigned at train.py:6 in only_in_one_elif():  y = z = 3
  Assign `y` in both branches, or give it a value before the `elif`.
""",
    deleted: """
DivergentBranchesError: `y` has a value only if the condition of this `if` is false; if it is true, it is deleted (train.py:3 in deleted()).
  train.py:2 in deleted()
      if x > 1:
  Assign `y` in both branches, or give it a value before the `if`.
""",
    structures: """
DivergentBranchesError: the branches of this `if` assign different structures to `y`, which cannot be merged.
  train.py:1 in structures()
      if x > 1:
  if the condition is true: {'a': node, 'b': [node, number]}  (train.py:2 in structures())
  if the condition is false: {'a': node}  (train.py:4 in structures())
  Give both branches the same structure: the same keys, the same lengths, and numbers or graph values at the same positions.
""",
    none: """
DivergentBranchesError: the branches of this `if` assign different structures to `y`, which cannot be merged.
  train.py:1 in none()
      if x > 1:
  if the condition is true: node  (train.py:2 in none())
  if the condition is false: None  (train.py:4 in none())
  A sample cannot be None: return data in both branches, for instance zeros of the same type.
""",
    text: """
DivergentBranchesError: the branches of this `if … else` assign different structures to the result, which cannot be merged.
  train.py:1 in text()
      return x if x > 1 else "small"
  if the condition is true: node  (train.py:1 in text())
  if the condition is false: 'small'  (train.py:1 in text())
  Give both branches the same structure: the same keys, the same lengths, and numbers or graph values at the same positions.
""",
    enumerations: """
DivergentBranchesError: the branches of this `if` assign different values to `kind`, which cannot be merged.
  train.py:2 in enumerations()
      if x > 1:
  if the condition is true: DALIDataType.INT32  (train.py:3 in enumerations())
  if the condition is false: DALIDataType.FLOAT
  Only numbers and graph values can differ between samples: use the value within each branch, and merge the graph value that is computed with it.
""",
    functions: """
DivergentBranchesError: the branches of this `if` assign different values to `change`, which cannot be merged.
  train.py:1 in functions()
      if x > 1:
  if the condition is true: builtin_function_or_method  (train.py:2 in functions())
  if the condition is false: builtin_function_or_method  (train.py:4 in functions())
  Only numbers and graph values can differ between samples: use the value within each branch, and merge the graph value that is computed with it.
""",
    missing_return: """
DivergentBranchesError: if the condition of this `if` is false, the function ends without `return`; otherwise it returns a value.
  train.py:1 in missing_return()
      if x > 1:
  It returns at train.py:2 in missing_return():  return x
  Add a `return` to the other path.
""",
    missing_return_first: """
DivergentBranchesError: if the condition of this `if` is true, the function ends without `return`; otherwise it returns a value.
  train.py:1 in missing_return_first()
      if x > 1:
  It returns at train.py:4 in missing_return_first():  return x
  Add a `return` to the other path.
""",
    any_of: """
ConditionError: any() needs a value, but a graph value has none while the pipeline is defined.
  train.py:1 in any_of()
      return any([x > 1, x > 2])
  Combine the conditions with `or`: a or b.
""",
    largest: """
ConditionError: max() needs a value, but a graph value has none while the pipeline is defined.
  train.py:1 in largest()
      return max(x, 3)
  Use dalify.math.max(a, b) for the larger of two values, or fn.reductions.max(x) within one sample.
""",
    boolean: """
ConditionError: bool() needs a value, but a graph value has none while the pipeline is defined.
  train.py:1 in boolean()
      return bool(x)
  Compare it, `x != 0`, or cast it: fn.cast(x, dtype=types.BOOL).
""",
    number_on_the_right: """
ConditionError: the right operand of this `and` is of type int; if the other operand is a graph value, it must be a boolean.
  train.py:1 in number_on_the_right()
      return x > 1 and 3
  Compare it, `b != 0`. To select a value by a condition, write `x if a else y`.
""",
    walrus: """
UnsupportedSyntaxError: `:=` and `yield` are not supported in a part of an expression that is evaluated for some samples only.
  train.py:1 in walrus()
      return x > 1 and (y := x + 1) > y
  Assign the variable in a separate statement before, or use an `if` statement.
""",
    attribute: """
DivergentBranchesError: the branches of this `if` assign different structures to `SimpleNamespace.value`, which cannot be merged.
  train.py:1 in attribute()
      if x > 1:
  if the condition is true: None  (train.py:2 in attribute())
  if the condition is false: number
  A sample cannot be None: return data in both branches, for instance zeros of the same type.
""",
    item: """
DivergentBranchesError: `dict['k']` has a value only if the condition of this `if` is true; if it is false, it has no value.
  train.py:2 in item()
      if x > 1:
  It is assigned at train.py:3 in item():  table["k"] = x
  Assign `dict['k']` in both branches, or give it a value before the `if`.
""",
    on_the_gpu: """
ConditionError: the condition of this `if` is on the GPU; the branch of each sample is decided on the CPU.
  train.py:2 in on_the_gpu()
      if x:
  Compute it with device='cpu', or copy it with .cpu().
""",
}


def message(function: Callable[..., Any]) -> str:
    """Return class and text of the error, with lines counted from the ``def``."""
    with pytest.raises(DalifyError) as caught:
        traced(function, "x")
    first = function.__code__.co_firstlineno
    text = f"{type(caught.value).__name__}: {caught.value}"
    text = text.replace("<listcomp>", function.__name__)  # until Python 3.11 it was a function of its own
    return re.sub(r"test_checks\.py:(\d+)", lambda found: f"train.py:{int(found[1]) - first}", text)


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_message(function: Callable[..., Any]) -> None:
    assert message(function) == EXPECTED[function].strip("\n")
