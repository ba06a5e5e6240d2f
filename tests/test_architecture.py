"""The rules of CONTRIBUTING.md that a test can check. Import-linter checks the layers, see pyproject.toml."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pytest
from PIL import Image

PROJECT = Path(__file__).parent.parent
PACKAGE = PROJECT / "dalify"
HEAVY_PACKAGES = ("torch", "numba", "cv2", "PIL", "scipy", "simplejpeg")
UNUSED_IN_TRAINING = (
    "torch",
    "cv2",
    "asyncio",
    "PIL",
    "multiprocessing.connection",
    "dalify.executor.process_assembly",
    "dalify.sources.parallel",
    "dalify.sources.worker_pool",
)
LARGEST_FILE_LINES = 600
# DALI's Pipeline is one class with a hundred methods. Here they delegate, so that more than half of the file is
# signatures and docstrings; to divide it would need mixins, which share attributes.
LONGER_FILES = {"dalify/pipeline/pipeline.py": 830}

# Split strings, so that this file passes the test.
UNFINISHED_MARKS = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "raise NotImplemented" + "Error"]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)

RULES: list[Callable[[Path], None]] = []
PUBLIC_FOLDERS = {"auto_aug", "backend_impl", "experimental", "plugin"}
# Modules in packages of plugins that users of DALI import by their path.
DALI_FILES = {"clu.py", "experimental.py", "fn.py", "math.py", "torch_utils.py"}


def rule(check: Callable[[Path], None]) -> Callable[[Path], None]:
    """Check all modules. One test checks the rules of a package: thousands of small tests would take a minute."""
    RULES.append(check)
    return check


@lru_cache(maxsize=1)  # of the module whose rules are checked
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def exported_names(tree: ast.Module) -> list[str] | None:
    """Return `__all__` of a module, or None."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if (
            any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
            and node.value is not None
        ):
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:  # computed, for instance from the catalog
                return None
    return None


def top_level_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import, including those in `if` and `try`."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try):
                yield from top_level_statements(getattr(node, field, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from top_level_statements(handler.body)


def names_of(tree: ast.Module) -> tuple[set[str], set[str], set[str]]:
    """Return the functions and classes that a module defines, variables that it assigns, names that it imports."""
    defined: set[str] = set()
    assigned: set[str] = set()
    imported: set[str] = set()
    for node in top_level_statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return defined, assigned, imported


def replaces_itself(tree: ast.Module) -> bool:
    """Whether the module replaces itself in `sys.modules` by an object that creates names on demand."""
    return any(isinstance(node, ast.Assign) and "sys.modules[__name__]" in ast.unparse(node) for node in tree.body)


def is_public_module(path: Path) -> bool:
    """Whether users import the module by its path: top level, plugins, and DALI's modules in their packages."""
    folders = path.relative_to(PACKAGE).parts
    is_plugin = folders[0] in PUBLIC_FOLDERS and (len(folders) == 2 or path.name in DALI_FILES)
    return path.name != "__main__.py" and (len(folders) == 1 or is_plugin)


@rule
def modules_have_docstrings(path: Path) -> None:
    docstring = ast.get_docstring(parse(path))
    assert docstring, f"{path}: add a module docstring that says what the module does"


@rule
def file_sizes(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    largest = LONGER_FILES.get(path.relative_to(PROJECT).as_posix(), LARGEST_FILE_LINES)
    assert lines <= largest, f"{path} has {lines} lines; divide it by subject"


@rule
def only_modules_for_others_have_all(path: Path) -> None:
    """`__all__` lists what users, or the rest of the package, import from here; elsewhere, underscores say it."""
    tree = parse(path)
    exported = exported_names(tree)
    defined, assigned, imported = names_of(tree)
    re_exports = path.name == "__init__.py" and any(isinstance(node, ast.ImportFrom) for node in tree.body)
    needs_all = (re_exports or is_public_module(path)) and bool(defined | assigned | imported - {"annotations"})
    if exported is None:
        is_computed = "__all__" in assigned or replaces_itself(tree)
        assert is_computed or not needs_all, f"{path}: users import from here, so list the public names in __all__"
        return
    assert needs_all or imported & set(exported), f"{path}: __all__ repeats the names without underscore; remove it"
    assert len(exported) == len(set(exported)), f"{path}: duplicate name in __all__"
    if "__getattr__" not in defined:  # otherwise names may be created on demand
        unknown = set(exported) - defined - assigned - imported
        assert not unknown, f"{path}: names in __all__ that are not defined: {sorted(unknown)}"
    missing = {name for name in defined if not name.startswith("_")} - set(exported)
    assert not missing, f"{path}: public names that are not in __all__: {sorted(missing)}"


@pytest.mark.parametrize(
    "package", ["api", "codecs", "data", "formats", "frontend", "graph", "immediate", "kernels", "registry", "sources"]
)
def test_published_names_exist(package: str) -> None:
    """Also those that are imported at first use, which type checkers find elsewhere."""
    module = importlib.import_module(f"dalify.{package}")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


@rule
def no_deferred_import_of_dalify(path: Path) -> None:
    tree = parse(path)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    for function in functions:
        for node in ast.walk(function):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = ["dalify" if node.level else node.module or ""]
            assert not any(name.split(".")[0] == "dalify" for name in names), f"{path}:{node.lineno}: import at the top"


def imported_names(path: Path) -> set[str]:
    """Return the dotted names that a module imports, also for types only, or by `LazyModule` at their first use."""
    names: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "LazyModule"
            and isinstance(node.args[0], ast.Constant)
        ):
            names.add(ast.literal_eval(node.args[0]))
    return names


def cycle_in(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the modules that are in an import cycle or import such a module, sorted."""
    left = {name: set(targets) - {name} for name, targets in imports.items()}
    while leaves := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in leaves:
            del left[name]
    return sorted(left)


def test_modules_do_not_import_each_other() -> None:
    """Import-linter ignores modules that `LazyModule` imports at their first use, and imports for types."""
    paths = {
        ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES
    }
    imports: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = imported_names(path)
        imports[module] = {name if name in paths else name.rpartition(".")[0] for name in names} & paths.keys()
    assert sum(map(len, imports.values())) > len(paths)
    assert cycle_in(imports) == []


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["a", "b"], "b": []}, []),
        ({"a": ["b"], "b": ["a"], "c": ["d"], "d": []}, ["a", "b"]),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c"]),
    ],
)
def test_cycles_are_found(imports: dict[str, list[str]], expected: list[str]) -> None:
    assert cycle_in(imports) == expected


@rule
def nothing_is_unfinished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    marks = [mark for mark in UNFINISHED_MARKS if re.search(rf"\b{mark}\b", text)]
    assert not marks, f"{path}: {marks}"


def changes_of(tree: ast.Module, name: str) -> list[str]:
    """Return the statements that assign attributes of objects called `name`, or change the containers in them."""
    of_attribute = re.compile(rf"(\w+\.)*{name}\.\w+(\[.*\])?")
    changing = re.compile(rf"(\w+\.)*{name}\.\w+(\[.*\]|\..+)?\.(append|extend|add|update|pop|clear|setdefault|record)")
    changes: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changes += [node] if of_attribute.fullmatch(ast.unparse(node)) else []
        elif isinstance(node, ast.Call) and changing.fullmatch(ast.unparse(node.func)):
            changes.append(node)
    return [ast.unparse(node) for node in changes]


@pytest.mark.parametrize(
    "statement",
    [
        "iteration.bad = []",
        "order.iteration.rows, x = 1, 2",
        "iteration.values[slot] = None",
        "iteration.entries[slot][position] = 1",
        "iteration.stage += 1",
        "del iteration.values[0]",
        "iteration.bad.append(1)",
        "iteration.substitutes.setdefault(node, set()).add(position)",
        "order.iteration.error.record(error)",
    ],
)
def test_changes_are_found(statement: str) -> None:
    assert changes_of(ast.parse(statement), "iteration")
    assert not changes_of(ast.parse(statement), "other")


@rule
def iteration_owns_its_transitions(path: Path) -> None:
    """Only the module of `Iteration` changes its attributes; others call its methods."""
    if path != PACKAGE / "executor" / "iteration.py":
        assert not changes_of(parse(path), "iteration")


@rule
def iterations_are_called_iteration(path: Path) -> None:
    """Parameters and fields of type `Iteration` have the name that the rule above looks for."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            name = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            assert ast.unparse(node.annotation) != "Iteration" or name.endswith("iteration"), name


@rule
def functions_are_typed(path: Path) -> None:
    """Public functions and methods annotate all arguments and results, and so do kernels, which are named `_`."""
    untyped = []
    body = parse(path).body
    methods = [method for node in body if isinstance(node, ast.ClassDef) for method in node.body]
    for node in [*body, *methods]:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            node.name.startswith("_") and node.name != "_"
        ):
            continue
        rest = [item for item in (node.args.vararg, node.args.kwarg) if item is not None and node.name == "_"]
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest]
        arguments = [a for i, a in enumerate(arguments) if not (i == 0 and a.arg in {"self", "cls"})]
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        is_compiled = any(name in text for text in decorators for name in ("njit", "vectorize", "triton.jit"))
        if not is_compiled and (node.returns is None or any(a.annotation is None for a in arguments)):
            untyped.append(f"{path}:{node.lineno} {node.name}")
    assert not untyped


@pytest.mark.parametrize("package", sorted({path.relative_to(PACKAGE).parts[0] for path in MODULES}))
def test_rules_of_modules(package: str) -> None:
    failures = []
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0] == package:
            for check in RULES:
                try:
                    check(path)
                except AssertionError as error:
                    failures.append(f"{path}, {check.__name__}: {error}")
    assert not failures, "\n".join(failures)


def test_import_loads_no_heavy_package() -> None:
    program = f"import sys, dalify; print(*[name for name in {HEAVY_PACKAGES} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_training_pipeline_loads_no_module_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number in range(2):
        Image.new("RGB", (40, 30), (number, 90, 200)).save(tmp_path / "a" / f"{number}.jpg")
    program = f"""
import sys
from dalify import fn, pipeline_def, types

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def training():
    encoded, labels = fn.readers.file(file_root={str(tmp_path)!r}, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=[20, 20])
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[1.0], std=[2.0], dtype=types.FLOAT)
    return images, labels

training().run()
print(*[name for name in {UNUSED_IN_TRAINING} if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_import_time(record_property: pytest.FixtureRequest) -> None:
    """A generous bound on CPU time, which depends little on the load of the machine."""
    program = "import time; t = time.process_time(); import dalify; print(time.process_time() - t)"
    seconds = min(
        float(
            subprocess.run(
                [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    )
    record_property("import_seconds", seconds)
    assert seconds < 1.0
