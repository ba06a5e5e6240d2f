"""Write the index of a WebDataset archive, in the format of DALI's tool of this name.

``wds2idx ARCHIVE INDEX``.
"""

from __future__ import annotations

import sys

from dalify.formats.records.webdataset import write_index
from dalify.tools.indexing import index_tool

__all__ = ["main"]

main = index_tool("wds2idx", "a WebDataset archive", write_index, "samples")

if __name__ == "__main__":
    sys.exit(main())
