"""The pages of the API reference. mkdocstrings fills them from the docstrings; operators have pages of their own."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Public modules and the titles of their pages.
MODULES: dict[str, str] = {
    "dalify.pipeline": "Pipeline",
    "dalify.graph": "Graph",
    "dalify.types": "Types",
    "dalify.math": "Math",
    "dalify.eager": "Eager mode",
    "dalify.deferred": "Lazy mode",
    "dalify.tensors": "Tensors and tensor lists",
    "dalify.samplers": "Samplers",
    "dalify.storage": "Storage",
    "dalify.limits": "Limits",
    "dalify.tfrecord": "TFRecord features",
    "dalify.warmup": "Warming up",
    "dalify.auto_aug.auto_augment": "AutoAugment",
    "dalify.auto_aug.rand_augment": "RandAugment",
    "dalify.auto_aug.trivial_augment": "TrivialAugment",
    "dalify.auto_aug.augmentations": "Augmentations",
    "dalify.plugin.pytorch": "PyTorch",
    "dalify.plugin.numpy": "NumPy",
    "dalify.plugin.jax": "JAX",
    "dalify.plugin.tf": "TensorFlow",
    "dalify.plugin.paddle": "Paddle",
    "dalify.plugin.ray": "Ray",
    "dalify.plugin_manager": "Plug-ins",
    "dalify.base.errors": "Errors",
}
# Packages that export names of other packages, which their own pages document.
_DEFINING = ("dalify.pipeline", "dalify.plugin")
# What is public of a package that has names for other packages of dalify.
_PUBLIC = {"dalify.graph": {"DataNode", "new_axis"}}


def _file_of(name: str) -> Path:
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() and (path / "__init__.py").exists() else path.with_suffix(".py")


def exported_names(name: str) -> list[str]:
    """Return the public names that the page of a module documents."""
    tree = ast.parse(_file_of(name).read_text(encoding="utf-8"))
    origins = {
        alias.asname or alias.name: node.module or ""
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names: list[str] = next(
        (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ),
        sorted(node.name for node in tree.body if isinstance(node, ast.ClassDef)),  # the classes of errors
    )
    if name.startswith(_DEFINING):
        root = ".".join(name.split(".")[:2])
        names = [item for item in names if origins.get(item, root).startswith(root)]
    return [item for item in names if item in _PUBLIC.get(name, names)]


def page_of(name: str, title: str) -> str:
    """Return the page of a module."""
    members = "".join(f"        - {item}\n" for item in exported_names(name))
    # Errors inherit only what all exceptions have.
    inherited = "      inherited_members: false\n" if name == "dalify.base.errors" else ""
    return f"# {title}\n\n`{name}`\n\n::: {name}\n    options:\n{inherited}      members:\n{members}"
