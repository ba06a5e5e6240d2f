"""Write the list of operators, `docs/operators.md`, from the catalogue: `python -m docs.operators`."""

from __future__ import annotations

from pathlib import Path

from dalify.registry import catalogue
from dalify.registry.operator import Operator

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).with_suffix(".md")

HEADING = """# Operators

Made by `python -m docs.operators`; a test fails where this page and the package differ. `help(fn.resize)` tells all
about one operator. `mixed`: takes data of the CPU and gives them to the GPU. Arithmetic, comparisons and indexing of
nodes, and `dalify.math`, are operators too, written as in Python.

| operator | devices | what it does |
|---|---|---|
"""


def devices_of(operator: Operator) -> str:
    """The devices that users may name. Sources have no kernels: readers give data on the CPU, a user's on either."""
    mixed = ["mixed"] if operator.takes_mixed else []
    of_a_source = ["cpu"] if operator.is_reader else ["cpu", "gpu"]
    return ", ".join([*(sorted(operator.kernels) or of_a_source), *mixed])


def summary_of(operator: Operator) -> str:
    """The first sentence of the documentation, which may run over several lines."""
    paragraph = " ".join(operator.doc.partition("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".").replace("``", "`").replace("|", "\\|")


def page() -> str:
    """The page as it has to be."""
    public = [name for name in catalogue.names() if not any(part.startswith("_") for part in name.split("."))]
    rows = [f"| `fn.{o.name}` | {devices_of(o)} | {summary_of(o)} |\n" for o in map(catalogue.find, public)]
    return HEADING + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
