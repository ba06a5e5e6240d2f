"""Write the index of a WebDataset archive, in the format of DALI's tool of this name.

``wds2idx ARCHIVE [INDEX]``: by default, the index is next to the archive: ``train.idx`` for ``train.tar``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dalify.formats.records.webdataset import write_index
from dalify.tools.indexing import index_tool


def _index_beside(archive: str) -> str:
    """Return the name up to the first dot, as DALI's tool does, with another extension."""
    path = Path(archive)
    return str(path.with_name(path.name[:1] + path.name[1:].split(".")[0] + ".idx"))


main = index_tool("wds2idx", "a WebDataset archive", write_index, "samples", _index_beside)

if __name__ == "__main__":
    sys.exit(main())
