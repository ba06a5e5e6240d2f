"""The pages of the documentation site: links, navigation, output of tutorials. MkDocs is not needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.site import api, tutorials
from docs.site.links import links_of, rewritten
from docs.site.pages import GUIDE, PAGES, ROOT, navigation, write
from docs.site.tutorials import Output

TUTORIAL = '''# %% [markdown]
"""# A title

[Another](02_other.py).
"""

# %%
import inspect
import multiprocessing
from pathlib import Path


def double(number):
    return 2 * number


if __name__ == "__main__":
    print("one")

# %% [markdown]
"""Text."""

# %%
if __name__ == "__main__":
    print(inspect.getsource(double).splitlines()[0], "<b>")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [21]))
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write(folder, {}, run_tutorials=False)
    return folder


def pages_of(items: list[Any]) -> Iterator[str]:
    for item in items:
        for target in item.values():
            yield from [target] if isinstance(target, str) else pages_of(target)


def anchors_of(text: str) -> set[str]:
    """Return the anchors of headings, as Python-Markdown names them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_navigation_has_every_page_once(site: Path) -> None:
    listed = list(pages_of(navigation()))
    assert sorted(listed) == sorted(path.relative_to(site).as_posix() for path in site.rglob("*.md"))


def test_every_written_page_is_in_the_navigation() -> None:
    folder = ROOT / "docs"
    written = {path.relative_to(ROOT).as_posix() for path in [*folder.glob("*.md"), *folder.glob("migrating/*.md")]}
    assert written <= {path for _, _, path in GUIDE}


def test_links_lead_to_pages_and_headings(site: Path) -> None:
    count = 0
    for path in site.rglob("*.md"):
        for target in links_of(path.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            there = path.parent / name if name else path
            assert there.is_file(), f"{path.relative_to(site)}: {target}"
            if anchor:
                assert anchor in anchors_of(there.read_text(encoding="utf-8")), f"{path.relative_to(site)}: {target}"
            count += 1
    assert count > len(PAGES)


def test_links_are_converted() -> None:
    pages = {"README.md": "index.md", "docs/modes.md": "modes.md", "tutorials/01_a.py": "tutorials/01_a.md"}
    text = "[a](../tutorials/01_a.py) [b](modes.md#lazy) [`c`](../dalify/fn.py) [d](https://x.org) [e](#here)"
    assert rewritten(text, "docs/modes.md", "modes.md", pages) == (
        "[a](tutorials/01_a.md) [b](modes.md#lazy) `c` [d](https://x.org) [e](#here)"
    )
    code = "```python\nx = table[a](modes.md)\n```"
    assert rewritten(code, "docs/modes.md", "modes.md", pages) == code


def test_tutorial_is_shown_with_the_output_of_each_cell(tmp_path: Path) -> None:
    path = tmp_path / "01_example.py"
    path.write_text(TUTORIAL, encoding="utf-8")
    outputs = tutorials.execute(path)
    assert outputs == {
        0: Output(),
        1: Output("one\n"),
        2: Output(),
        3: Output("def double(number): <b>\n[42]\n"),
    }
    page = tutorials.page_of(path, outputs, tmp_path / "pictures", lambda text: text.replace("02_other.py", "other.md"))
    assert tutorials.title_of(path) == "A title"
    assert page.index("[Another](other.md)") < page.index("def double") < page.index('<pre class="output">one</pre>')
    assert '<pre class="output">def double(number): &lt;b&gt;\n[42]</pre>' in page


def test_a_tutorial_may_end_early(tmp_path: Path) -> None:
    path = tmp_path / "01_example.py"
    path.write_text('# %% [markdown]\n"""# Title"""\n\n# %%\nprint("skipped")\nraise SystemExit\n\n# %%\nmissing\n')
    assert tutorials.execute(path) == {0: Output(), 1: Output("skipped\n")}


def test_a_failing_tutorial_stops_the_site(tmp_path: Path) -> None:
    path = tmp_path / "01_example.py"
    path.write_text('# %% [markdown]\n"""# Title"""\n\n# %%\nraise KeyError("missing")\n', encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"01_example\.py failed(.|\n)*KeyError: 'missing'"):
        tutorials.execute(path)


@pytest.mark.parametrize("name", api.MODULES)
def test_api_pages_have_members(name: str) -> None:
    assert api.exported_names(name)
    assert f"::: {name}\n" in api.page_of(name, "Title")
