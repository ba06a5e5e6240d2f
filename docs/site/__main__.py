"""Write the pages of the site to ``out/site/``: ``python -m docs.site [--quick]``.

``mkdocs build --strict -f out/site/mkdocs.yml`` then makes HTML in ``out/site/html``; ``make docs`` does both.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from docs import parity, pictures
from docs.signatures import public_names
from docs.site.pages import navigation, write
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES

ROOT = Path(__file__).parents[2]
SITE = ROOT / "out" / "site"


def main() -> None:
    """Write pages and configuration."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="do not execute the tutorials, show the last figures of parity"
    )
    parser.add_argument("--folder", type=Path, default=SITE)
    options = parser.parse_args()
    folder: Path = options.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pictures.main([name for name in public_names() if not (pictures.FOLDER / f"{name}.jpg").exists()])
    if not options.quick:
        print("measuring parity", flush=True)
        parity.measure_all([name for name in NAMES if name in CASES])
    write(folder / "pages", parity.figures(), run_tutorials=not options.quick)
    configuration = {
        "INHERIT": str(ROOT / "docs" / "mkdocs.yml"),
        "docs_dir": "pages",
        "site_dir": "html",
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT)]}}}},
        "nav": navigation(),
    }
    # JSON is YAML.
    (folder / "mkdocs.yml").write_text(json.dumps(configuration, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
