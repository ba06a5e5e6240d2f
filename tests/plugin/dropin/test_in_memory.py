"""Datasets in memory: batches are selected at once, with torch's results, errors and order."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import UserDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    StackDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin import columns
from tests.plugin.dropin.torch_reference import TorchLoader, same, seed, until_the_end

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT = 23
SCALE = 2


class InMemory(Dataset[Any]):
    """Attributes of many types; subclasses return them in different ways."""

    transform: Any = None

    def __init__(self) -> None:
        numbers = np.random.default_rng(3)
        self.tensor = torch.from_numpy(numbers.normal(size=(COUNT, 3, 4)).astype(np.float32))
        self.images = numbers.integers(0, 256, (COUNT, 6, 5, 3), dtype=np.uint8)
        self.array = numbers.normal(size=(COUNT, 7))
        self.scalars = np.arange(COUNT, dtype=np.int16)
        self.labels = list(range(COUNT))
        self.fractions = [number / 7 for number in range(COUNT)]
        self.names = [f"sample {number}" for number in range(COUNT)]
        self.encodings = {
            "ids": torch.arange(COUNT * 4).reshape(COUNT, 4),
            "mask": torch.ones(COUNT, 4, dtype=torch.bool),
        }
        self.tokens = UserDict({"ids": [[number, 1] for number in range(COUNT)], "mask": [[1, 0]] * COUNT})

    def __len__(self) -> int:
        return COUNT


class Pairs(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index], self.labels[index]


class OneValue(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.scalars[index]


class Usual(InMemory):
    def __getitem__(self, idx: Any) -> Any:
        """Return a sample."""
        if torch.is_tensor(idx):
            idx = idx.tolist()
        image = torch.from_numpy(self.images[idx]).permute(2, 0, 1).float() / 255.0
        label = torch.tensor(self.labels[idx], dtype=torch.long)
        if self.transform is not None:
            image = self.transform(image)
        elif not self.transform:
            pass
        sample: dict[str, Any] = {"image": image, "label": label, "name": self.names[idx], "index": idx}
        sample["fraction"] = self.fractions[idx]
        return sample


class Computed(InMemory):
    def __getitem__(self, i: int) -> Any:
        x, y = self.tensor[i], self.array[i]
        return [
            x * 2 - 1,
            1 - x,
            (x + 0.5).double(),
            y / 3,
            torch.as_tensor(y, dtype=torch.float32),
            y.astype(np.float32),
        ]


class Converted(InMemory):
    def __getitem__(self, i: int) -> Any:
        return (
            self.tensor[i].unsqueeze(0).clone().detach(),
            torch.as_tensor(self.scalars[i]).float(),
            torch.tensor(self.fractions[i]),
            self.tensor[i].to(torch.bfloat16),
            self.images[i].copy(),
            (self.names[i], (i, int(i))),
        )


class Tokenized(InMemory):
    def __getitem__(self, idx: int) -> Any:
        item = {key: value[idx].clone().detach() for key, value in self.encodings.items()}
        item["labels"] = torch.tensor(self.labels[idx])
        return item


class TokenizedByTransformers(InMemory):
    def __getitem__(self, idx: int) -> Any:
        return {name: torch.tensor(each[idx]) for name, each in self.tokens.items()}


class Returns(InMemory):
    def __getitem__(self, i: int) -> Any:
        if self.transform is None:
            return torch.as_tensor(self.tensor[i]), torch.as_tensor(self.tensor[i], dtype=torch.float64)
        return self.names[i]


def tensors() -> TensorDataset:
    return TensorDataset(torch.arange(COUNT * 6.0).reshape(COUNT, 2, 3), torch.arange(COUNT), torch.arange(COUNT) > 4)


SELECTED: dict[str, Callable[[], Any]] = {
    "tensors": tensors,
    "bfloat16": lambda: TensorDataset(torch.arange(float(COUNT)).to(torch.bfloat16)),
    "not contiguous": lambda: TensorDataset(torch.arange(COUNT * 6).reshape(6, COUNT).T),
    **{
        kind.__name__: kind
        for kind in (Pairs, OneValue, Usual, Computed, Converted, Tokenized, TokenizedByTransformers, Returns)
    },
    "a tensor": lambda: torch.arange(COUNT * 2).reshape(COUNT, 2),
    "an array": lambda: np.arange(COUNT),
    "a list": lambda: [
        {"number": number, "values": (torch.full((2,), number), str(number))} for number in range(COUNT)
    ],
    "subset": lambda: Subset(Usual(), [3, 1, 4, 1, 5, -2]),
    "split": lambda: random_split(tensors(), [9, 14], torch.Generator().manual_seed(1))[1],
    "subset of a subset": lambda: Subset(Subset(Pairs(), range(2, 20)), [0, 5, 17]),
    "joined": lambda: ConcatDataset([tensors(), tensors()]),
    "joined subsets": lambda: ConcatDataset([Usual(), Subset(Usual(), [4, 2]), Usual()]),
    "joined strings": lambda: ConcatDataset([Converted(), Converted()]),
    "stack": lambda: StackDataset(Pairs(), torch.arange(COUNT), tensors()),
    "named stack": lambda: StackDataset(a=Usual(), b=list(range(COUNT)), c=np.arange(COUNT)),
}


class Noise(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index] + torch.rand(1)


class Draws(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index], random.random()


class Branches(InMemory):
    def __getitem__(self, index: int) -> Any:
        if self.labels[index] > 3:
            return self.tensor[index]
        return -self.tensor[index]


class Counts(InMemory):
    calls = 0

    def __getitem__(self, index: int) -> Any:
        self.calls += 1
        return self.tensor[index]


class Shifted(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[(index + 1) % COUNT]


class Transformed(InMemory):
    def __init__(self) -> None:
        super().__init__()
        self.transform = torch.negative

    def __getitem__(self, index: int) -> Any:
        image = self.tensor[index]
        if self.transform is not None:
            image = self.transform(image)
        return image


class ByProperty(InMemory):
    @property
    def doubled(self) -> Any:
        return self.tensor * 2

    def __getitem__(self, index: int) -> Any:
        return self.doubled[index]


class Shadowed(ByProperty):
    """A property takes precedence over an attribute of the object."""

    def __init__(self) -> None:
        super().__init__()
        vars(self)["doubled"] = self.tensor


class ByGlobal(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index] * SCALE


class Scalars(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.scalars[index] * 2.5  # the type of the result depends on the number of dimensions


class Inherited(Pairs):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)


class Many(Pairs):
    def __getitems__(self, indices: list[int]) -> Any:
        return [(torch.zeros(1), index) for index in indices]


def decorated(function: Any) -> Any:
    return lambda *arguments: function(*arguments)


class Decorated(InMemory):
    @decorated
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index]


class Compared(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.names[index] if self.names is self.labels else self.tensor[index]


class ByName(InMemory):
    def __getitem__(self, index: int) -> Any:
        return {name: self.encodings[name][index] for name in self.encodings}


class Numbered(InMemory):
    def __getitem__(self, index: int) -> Any:
        return {1: self.tensor[index]}


class WithKeyword(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index].flip(dims=(0,))


class AsText(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.scalars[index].astype("U5")


class ByBoolean(InMemory):
    def __getitem__(self, index: int) -> Any:
        return self.tensor[index] * True


NOT_SELECTED: dict[str, Callable[[], Any]] = {
    **{
        kind.__name__: kind
        for kind in (
            Noise, Draws, Branches, Counts, Shifted, Transformed, ByProperty, Shadowed, ByGlobal, Scalars, Inherited,
            Many, Decorated, Compared, ByName, Numbered, WithKeyword, AsText, ByBoolean,
        )
    },
    "needs a gradient": lambda: TensorDataset(torch.arange(float(COUNT), requires_grad=True)),
    "indices of 32 bits": lambda: Subset(Pairs(), np.arange(5, dtype=np.int32)),  # pyright: ignore[reportArgumentType]
    "indices of two types": lambda: Subset(Pairs(), [1, np.int64(2)]),  # pyright: ignore[reportArgumentType]
}  # fmt: skip


def batches_of(kind: Any, dataset: Any, **options: Any) -> list[Any]:
    seed()
    loader = kind(dataset, **{"batch_size": 4, "shuffle": True, **options})
    return [*[batch for _ in range(2) for batch in loader], torch.get_rng_state(), random.getstate()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", SELECTED)
def test_batches_equal_torchs(name, workers):
    dataset = SELECTED[name]()
    loader = DataLoader(dataset, batch_size=4, num_workers=workers, on_fallback="raise")
    assert loader.explain().mode == "full"
    assert "in memory" in str(loader.explain())
    same(batches_of(DataLoader, dataset, num_workers=workers), batches_of(TorchLoader, dataset, num_workers=workers))


@pytest.mark.parametrize("part_elements", [1, 20, 500])
@pytest.mark.parametrize("kind", [Usual, Computed, Converted])
def test_functions_of_large_rows_compute_a_few_at_a_time(kind, part_elements, monkeypatch):
    monkeypatch.setattr(columns, "_PART_ELEMENTS", part_elements)
    dataset = kind()
    assert DataLoader(dataset).explain().mode == "full"
    same(batches_of(DataLoader, dataset), batches_of(TorchLoader, dataset))


def test_functions_of_large_batches_do_not_start_threads_of_torch():
    class Scaled(Dataset[Any]):
        def __init__(self) -> None:
            self.images = torch.arange(400, dtype=torch.int16).reshape(400, 1, 1).repeat(1, 30, 30)

        def __len__(self) -> int:
            return len(self.images)

        def __getitem__(self, index: int) -> Any:
            return self.images[index].float() / 255

    class Sizes(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (torch.Tensor.float, torch.Tensor.div):
                sizes.append(args[0].numel())
            return func(*args, **(kwargs or {}))

    sizes: list[int] = []
    dataset = Scaled()
    with Sizes():
        (batch,) = DataLoader(dataset, batch_size=400)
    assert torch.equal(batch, dataset.images.float() / 255)
    assert max(sizes) < 1 << 15  # at::internal::GRAIN_SIZE; an error if there are none


@pytest.mark.parametrize("name", NOT_SELECTED)
def test_other_datasets_are_left_to_torch(name):
    dataset = NOT_SELECTED[name]()
    loader = DataLoader(dataset, batch_size=4, on_fallback="silent")
    assert loader.explain().mode == "torch"
    assert getattr(dataset, "calls", 0) == 0
    same(batches_of(DataLoader, dataset, on_fallback="silent"), batches_of(TorchLoader, dataset))


OPTIONS: dict[str, dict[str, Any]] = {
    "last batch": {"drop_last": True},
    "whole": {"batch_size": COUNT},
    "persistent": {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 1},
    "sampler": {"shuffle": False, "sampler": WeightedRandomSampler([1.0, 5.0] * 11 + [2.0], 40)},
    "negative": {"shuffle": False, "sampler": [-1, 0, -COUNT, 5]},
    "NumPy's integers": {"shuffle": False, "sampler": np.arange(5)},
    "batches": {"batch_size": 1, "shuffle": False, "batch_sampler": [[1, 2], [0], [3, 4, 5]]},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", [tensors, Usual])
def test_options_of_the_loader(name, kind):
    same(batches_of(DataLoader, kind(), **OPTIONS[name]), batches_of(TorchLoader, kind(), **OPTIONS[name]))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"collate_fn": len}, "CO01"),
        ({"batch_size": None}, "LO02"),
        ({"num_workers": 1, "worker_init_fn": print}, "WI01"),
    ],
)
def test_options_that_need_single_samples_or_processes(options, code):
    assert DataLoader(tensors(), **options).explain().code == code


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("indices", [[0, 1, COUNT, 2], [0, 1, -COUNT - 1, 2], [1, "a"], [1.5]])
@pytest.mark.parametrize(
    "kind",
    [tensors, Usual, lambda: Subset(Pairs(), range(COUNT)), lambda: ConcatDataset([Usual(), Subset(Usual(), [])])],
)
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, indices, workers):
    def events(loader_kind: Any) -> list[Any]:
        return until_the_end(loader_kind(kind(), batch_sampler=[[3], indices, [4, 5]], num_workers=workers))

    found = events(DataLoader)
    assert isinstance(found[1], tuple)
    same(found, events(TorchLoader))


def test_a_list_that_is_too_short_raises_the_error_of_its_sample():
    dataset = Pairs()
    del dataset.labels[20:]
    batches = iter(DataLoader(dataset, batch_size=20, on_fallback="raise"))
    assert len(next(batches)[1]) == 20
    with pytest.raises(IndexError, match="list index out of range") as caught:
        next(batches)
    assert "raised while sample 20 was loaded" in caught.value.__notes__[0]


def test_a_list_that_becomes_shorter_raises_the_error_of_its_sample():
    dataset = Pairs()
    batches = iter(DataLoader(dataset, batch_size=4, on_fallback="raise"))
    next(batches)
    del dataset.labels[6:]
    with pytest.raises(IndexError, match="list index out of range") as caught:
        next(batches)
    assert "raised while sample 6 was loaded" in caught.value.__notes__[0]


def test_joined_datasets_of_other_shapes_or_types_raise_torchs_error():
    parts = [TensorDataset(torch.zeros(3, 2)), TensorDataset(torch.zeros(3, 2))]
    dataset = ConcatDataset(parts)
    loader = DataLoader(dataset, batch_size=6, on_fallback="raise")
    assert loader.explain().mode == "full"
    parts[1].tensors = (torch.zeros(3, 4),)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        next(iter(DataLoader(dataset, batch_size=6, on_fallback="silent")))


@pytest.mark.parametrize("values", [[1, 2.5, 3], [True, 2, 3], [[1, 2], [3, 4], [5, 6]]])
def test_lists_of_numbers_of_several_types(values):
    class Numbers(InMemory):
        def __init__(self) -> None:
            self.labels = values

        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return torch.tensor(self.labels[index])

    options = {"batch_sampler": [[0, 2], [2, 1, 0]]}
    same(list(DataLoader(Numbers(), on_fallback="raise", **options)), list(TorchLoader(Numbers(), **options)))


@pytest.mark.parametrize("change", ["tensor", "transform", "labels"])
def test_changes_during_an_epoch(change):
    def events(kind: Any) -> list[Any]:
        dataset = Usual() if change != "tensor" else Pairs()
        batches = iter(kind(dataset, batch_size=4))
        found = [next(batches)]
        if change == "tensor":
            dataset.tensor = dataset.tensor * 2
        elif change == "transform":
            dataset.transform = torch.negative
        else:
            dataset.labels[6] = 99
        return [*found, *batches]

    same(events(DataLoader), events(TorchLoader))


def test_nan_equals_nan_when_the_results_are_compared_with_torchs():
    assert DataLoader(TensorDataset(torch.full((3,), torch.nan))).explain().mode == "full"


PROGRAM = """
import sys
import torch
from dalify.plugin.pytorch import DataLoader

class Rows:
    values = torch.arange(6)
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return self.values[index]

text = "\\d"
if len(sys.argv) > 1:  # after the import, the file changes
    source = open(__file__).read()
    open(__file__, "w").write(source.replace("return self.values[index]", "return self.values[-index]"))
loader = DataLoader(Rows(), batch_size=6, on_fallback="silent")
print(loader.explain().mode, next(iter(loader)).tolist())
"""


@pytest.mark.parametrize(("arguments", "mode"), [([], "full"), (["change"], "torch")])
def test_source_files(tmp_path, arguments, mode):
    """Warnings of the user's file are not repeated, and a file that has changed is not used."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-W", "always", str(path), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert result.stdout == f"{mode} [0, 1, 2, 3, 4, 5]\n"
    assert result.stderr.count("invalid escape sequence") == 1


def test_threads_do_not_see_later_changes_of_lists():
    def events(kind: Any) -> list[Any]:
        dataset = Pairs()
        batches = iter(kind(dataset, batch_size=4, num_workers=1, prefetch_factor=1))
        found = [next(batches)]
        dataset.labels[:] = [0] * COUNT
        return [*found, *batches]

    same(events(DataLoader), events(TorchLoader))


def test_a_loader_continues_an_epoch():
    seed()
    loader = DataLoader(Usual(), batch_size=4, shuffle=True, num_workers=2)
    batches = iter(loader)
    next(batches)
    state, expected = loader.state_dict(), list(batches)
    resumed = DataLoader(Usual(), batch_size=4, shuffle=True, num_workers=2)
    resumed.load_state_dict(state)
    same(list(resumed), expected)


@given(
    st.lists(
        st.sampled_from(
            ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.integers(0, 3), max_size=3),
    st.lists(st.integers(-6, 5), min_size=1, max_size=9),
    st.booleans(),
)
def test_arrays_of_any_type_and_shape(names, shape, indices, are_tensors):
    arrays = [np.arange(6 * int(np.prod(shape))).reshape(6, *shape).astype(name) for name in names]
    parts = [torch.from_numpy(array) for array in arrays] if are_tensors else arrays
    dataset = StackDataset(*parts)  # pyright: ignore[reportArgumentType]
    loader = DataLoader(dataset, batch_sampler=[indices], on_fallback="raise")
    same(list(loader), list(TorchLoader(dataset, batch_sampler=[indices])))


def test_one_selection_copies_only_the_rows(tmp_path):
    """A memory map with a header of an odd length, and a transposed array, would be copied whole by `take`."""
    path = tmp_path / "values"
    path.write_bytes(b"x" + np.arange(12, dtype=np.float32).tobytes())
    values = np.memmap(path, np.float32, "c", 1, (6, 2))
    dataset = StackDataset(values, np.asfortranarray(np.arange(12.0).reshape(6, 2)))  # pyright: ignore[reportArgumentType]
    (found,) = DataLoader(dataset, batch_size=6, on_fallback="raise")
    assert found[0].tolist() == found[1].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]


class ByTypeOfIndex(InMemory):
    """Returns other values for other types of indices."""

    def __getitem__(self, index: Any) -> Any:
        if torch.is_tensor(index):
            return self.tensor[index.item()] * 2, self.labels[index]
        if isinstance(index, int):
            return self.tensor[index], index
        return self.tensor[index] * 3, index


class Converts(InMemory):
    def __getitem__(self, index: Any) -> Any:
        index = int(index)
        return self.tensor[index], self.names[index], index


class IsCheckedAfterwards(InMemory):
    def __getitem__(self, index: Any) -> Any:
        number = int(index)
        return self.tensor[number] * 2 if isinstance(index, int) else self.tensor[number]


ORDER = np.random.default_rng(5).permutation(COUNT)
INDICES: dict[str, Callable[[], Any]] = {
    "array": ORDER.copy,
    "negative": lambda: ORDER - COUNT,
    "tensor": lambda: torch.from_numpy(ORDER.copy()),
    "list of NumPy's integers": lambda: list(ORDER),
    "list of tensors": lambda: list(torch.from_numpy(ORDER.copy())),
    "32 bits": lambda: ORDER.astype(np.int32),
}
KINDS: list[Callable[[], Any]] = [
    tensors, Usual, Converts, ByTypeOfIndex, IsCheckedAfterwards,
    lambda: ConcatDataset([Pairs(), Pairs()]), lambda: StackDataset(image=Converts(), label=list(range(COUNT))),
]  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("use", ["subset", "sampler", "batch sampler"])
def test_indices_of_other_types(use, name, kind, workers):
    def events(loader: Any) -> list[Any]:
        indices, options = INDICES[name](), {"batch_size": 4, "num_workers": workers}
        dataset = Subset(kind(), indices) if use == "subset" else kind()
        if use == "sampler":
            options["sampler"] = indices
        if use == "batch sampler":
            options = {"batch_sampler": [indices[:4], indices[4:5], indices[5:]], "num_workers": workers}
        return until_the_end(iter(loader(dataset, **options)))

    same(events(DataLoader), events(TorchLoader))


@pytest.mark.parametrize("indices", [ORDER, torch.from_numpy(ORDER), list(ORDER)])
@pytest.mark.parametrize("workers", [0, 2])
def test_indices_of_arrays_and_tensors_select_whole_batches(indices, workers, monkeypatch):
    dataset = tensors()
    loader = DataLoader(dataset, batch_size=4, sampler=indices, num_workers=workers)
    subset = DataLoader(Subset(dataset, indices), batch_size=4, num_workers=workers)
    found = [iter(each) for each in (loader, subset)]
    next(found[0])  # compares samples of the dataset with torch's
    monkeypatch.delattr(TensorDataset, "__getitem__")
    assert len(list(found[0])) == (COUNT - 1) // 4
    if isinstance(indices, np.ndarray | torch.Tensor):
        assert subset.explain().mode == "torch"  # without the method
        assert len(list(found[1])) == (COUNT + 3) // 4


@pytest.mark.parametrize("workers", [0, 2])
def test_an_array_of_indices_that_is_changed(workers):
    def batches(loader: Any) -> list[Any]:
        indices = np.arange(12)
        found = iter(loader(Subset(tensors(), indices), batch_size=2, num_workers=workers))  # pyright: ignore[reportArgumentType]
        first = next(found)
        indices[:] = 3
        return [first, *found]

    same(batches(DataLoader), batches(TorchLoader))
