"""Statements of ARCHITECTURE.md and CONTRIBUTING.md that a test can check: packages, layers, files, passes."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from dalify.passes import PASSES
from dalify.registry import FedSource, KernelOperator, Reader, catalog, groups
from dalify.registry.kernel_operator import Form

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dalify"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PROSE = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
RULES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Below these folders a file may be named without its full path.
ABBREVIATED = ("dropin/",)
# Packages that select operators by role, without their names.
GENERAL = ("api", "executor", "frontend", "graph", "immediate", "passes", "pipeline", "registry")


def sources(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((PACKAGE / package).rglob("*.py"))]


def test_the_table_lists_every_package() -> None:
    rows = "".join(line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line))
    listed = set(re.findall(r"`(\w+)/`", rows))
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages - {"backend_impl", "tools"} <= listed
    assert {name for name in listed if not (PACKAGE / name).is_dir()} <= {"dynamic", "torchvision"}


def test_the_layers_equal_those_of_the_import_rules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [item["layers"] for item in settings["tool"]["importlinter"]["contracts"] if item["type"] == "layers"]
    expected = {
        name: str(number) for number, layer in enumerate(reversed(layers)) for name in re.findall(r"\w+", layer)
    }
    listed = {
        name: number
        for number, names in re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+)/`", names)
    }
    assert listed == expected


def test_operators_with_kernels_of_arrays_on_the_device_are_listed() -> None:
    table = PAGE[PAGE.index("| operators on the device |") : PAGE.index("Three steps need no kernel of samples")]
    listed = [name for row in table.splitlines() if row.startswith("| `") for name in re.findall(r"`([\w.]+)`", row)]
    operators = [catalog.find(name) for name in catalog.names()]
    in_groups = {
        operator.name
        for operator in operators
        if operator.required_inputs and isinstance(operator, KernelOperator)
        if (kernel := operator.kernels.get("gpu")) is not None and not operator.is_random
        if kernel.inner.__code__.co_filename == groups.__file__
    }
    assert sorted(listed) == sorted(in_groups)


def test_folders_of_tests_are_packages_or_listed() -> None:
    sentence = RULES[RULES.index("- The folders of `tests/`") : RULES.index("Files are named after behavior")]
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("**/*.py"))}
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert folders - packages == set(re.findall(r"`(\w+)/`", sentence)) - {"tests"}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE))))
def test_files_exist(name: str) -> None:
    folder = (
        PACKAGE / "plugin/pytorch" if name.startswith(ABBREVIATED) else ROOT if name.startswith("tests/") else PACKAGE
    )
    assert (folder / name).is_file()


@pytest.mark.parametrize(("name", "file"), sorted(set(re.findall(r"`(\w+)`,? (?:\(|in |of )`([\w/]+\.py)`", PAGE))))
def test_names_are_defined_in_their_files(name: str, file: str) -> None:
    text = (PACKAGE / file).read_text(encoding="utf-8")
    assert re.search(rf"^ *(?:(?:class|def) {name}\b|{name}\b.* = )", text, re.MULTILINE)


def test_names_exist() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*") if path.suffix in {".py", ".cpp"})
    words = set(re.findall(r"\w+", text))
    quoted = [item for item in re.findall(r"`([^`]+)`", PROSE) if not item.startswith(("tests/", "lint-imports"))]
    assert not {word for item in quoted for word in re.findall(r"[a-zA-Z_]\w+", item)} - words


def test_kinds_of_operators_have_the_listed_decorators() -> None:
    for name, kind in (("@operator", KernelOperator), ("@reader", Reader), ("@fed_source", FedSource)):
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        attached = re.findall(r"`(\w+)`", row.split("|")[3])
        assert attached
        assert [item for item in attached if not hasattr(kind, item)] == []


def test_forms_of_kernels_are_listed_with_their_decorators() -> None:
    table = PAGE[PAGE.index("| form | attached by |") : PAGE.index("A kernel lists only the arguments that it uses")]
    rows = {row.split("|")[1].strip(): row.split("|")[2] for row in table.splitlines()[2:] if row}
    assert {name.replace(" ", "_").upper() for name in rows} == set(Form.__members__)
    listed = {name for row in rows.values() for name in re.findall(r"`(\w+)`", row)}
    forms = "|".join(name.removesuffix("_").lower() for name in Form.__members__)
    assert listed == {name for name in dir(KernelOperator) if re.fullmatch(rf"(cpu_|gpu_|mixed_)({forms})|view", name)}


def test_operators_that_create_views_are_listed() -> None:
    (listed,) = re.findall(r"only creates views of other shapes or layouts \(([^)]+)\)", PAGE)
    operators = [operator for name in catalog.names() if isinstance(operator := catalog.find(name), KernelOperator)]
    views = {operator.name for operator in operators if any(k.form is Form.VIEW for k in operator.kernels.values())}
    assert set(re.findall(r"\w+", listed)) == views


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`make ([\w-]+)", page.read_text(encoding="utf-8"))}
    assert named
    assert named <= targets


def test_passes_are_listed_in_their_order() -> None:
    listed = PAGE[PAGE.index("The passes are in `PASSES`") : PAGE.index("After each pass, `verify`")]
    names = re.findall(r"^\d\. `(\w+)`(?: and `(\w+)`)?", listed, re.MULTILINE)
    assert [name for pair in names for name in pair if name] == [*PASSES]


def test_one_module_creates_nodes() -> None:
    creators = {
        path.relative_to(PACKAGE).as_posix()
        for path in sources(".")
        if (tree := ast.parse(path.read_text(encoding="utf-8")))
        and any(
            isinstance(node, ast.Call) and re.fullmatch(r"(.+\.)?Node", ast.unparse(node.func))
            for node in ast.walk(tree)
        )
    }
    assert creators == {"graph/node.py", "mediapipe/node.py"}  # a node of MediaPipe is another class
    assert "`new_node` in `graph/node.py`" in PAGE


@pytest.mark.parametrize("path", sources(*GENERAL), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_operator_is_known_by_name(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and re.search(r"operator\.(public_)?name$", ast.unparse(node.left)):
            assert not any(
                isinstance(other, (ast.Constant, ast.Tuple, ast.Set, ast.Name)) for other in node.comparators
            ), f"{path}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", sources("executor", "passes"), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_operator_is_created_by_name(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    for call in calls:
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            named = isinstance(value, ast.Constant) and value.value in catalog.names()
            assert not named, f"{path}:{call.lineno}: {ast.unparse(call)}"
