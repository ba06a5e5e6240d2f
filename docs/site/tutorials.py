"""Convert a tutorial, a Python file in cells, to a page with the output of each cell."""

from __future__ import annotations

import ast
import html
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tutorials.run import NEEDS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tutorials"
_LONGEST_OUTPUT_LINES = 60
_TERMINAL_COLORS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Cell:
    """A cell of a tutorial.

    Attributes:
        is_text: whether it is Markdown.
        source: the Markdown, or the code.
        line: number of lines of the file before the source.
    """

    is_text: bool
    source: str
    line: int


@dataclass(frozen=True)
class Output:
    """What a cell printed, and the pictures that it wrote, as paths relative to the working directory."""

    text: str = ""
    pictures: list[str] = field(default_factory=list)


def cells_of(path: Path) -> list[Cell]:
    """Divide a tutorial into cells."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    cells = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        source = "\n".join(lines[start + 1 : end]).strip("\n")
        is_text = lines[start].startswith("# %% [markdown]")
        cells.append(Cell(is_text, ast.literal_eval(source) if is_text else source, start + 1))
    return cells


def title_of(path: Path) -> str:
    """Return the first heading."""
    return cells_of(path)[0].source.splitlines()[0].lstrip("# ")


def execute(path: Path) -> dict[int, Output] | None:
    """Execute a tutorial in a process of its own, as `tutorials/run.py` does.

    Returns:
        outputs by number of the cell; None if the tutorial needs a package that is not installed.

    Raises:
        RuntimeError: the tutorial failed.
    """
    needed = NEEDS.get(path.name)
    if needed is not None and importlib.util.find_spec(needed) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "docs.site.run_cells", str(path), str(report)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"{path.name} failed:\n{result.stdout}\n{result.stderr}")
        mark, pictures = json.loads(report.read_text(encoding="utf-8"))
    texts = re.split(f"{re.escape(mark)}\n", result.stdout)[1:]
    return {number: Output(text, pictures[number]) for number, text in enumerate(texts)}


def page_of(path: Path, outputs: dict[int, Output] | None, pictures: Path, linked: Callable[[str], str]) -> str:
    """Return the page of a tutorial.

    Args:
        path: the tutorial.
        outputs: what `execute` returned.
        pictures: folder of the site to which the pictures are copied, beside the page.
        linked: converts the links of a text.
    """
    cells = cells_of(path)
    text = ""
    for number, cell in enumerate(cells):
        if cell.is_text:
            text += linked(cell.source.strip()) + "\n\n"
            if not number:
                text += f"This page is `tutorials/{path.name}`; the file runs as a program or as a notebook.\n\n"
                text += "" if outputs is not None else "It was not executed when this site was built.\n\n"
            continue
        text += f"```python\n{cell.source}\n```\n\n"
        output = (outputs or {}).get(number, Output())
        text += _printed(output.text)
        for name in output.pictures:
            if name.endswith(".png") and name.removesuffix("png") + "svg" in output.pictures:
                continue  # the same picture in two formats
            pictures.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, pictures / Path(name).name)
            text += f"![{Path(name).stem}]({pictures.name}/{Path(name).name})\n\n"
    return text


def _printed(text: str) -> str:
    lines = _TERMINAL_COLORS.sub("", text).replace("\r", "\n").rstrip().splitlines()
    if not lines:
        return ""
    if len(lines) > _LONGEST_OUTPUT_LINES:
        lines = [*lines[:_LONGEST_OUTPUT_LINES], "…"]
    # Not a fence: the output may contain one. An empty line would end the block.
    shown = "\n".join(html.escape(line) or "&#8203;" for line in lines)
    return f'<pre class="output">{shown}</pre>\n\n'
