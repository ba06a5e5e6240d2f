"""Write the index of a RecordIO file, in the format of DALI's tool of this name.

``rec2idx FILE INDEX``.
"""

from __future__ import annotations

import sys

from dalify.formats.records.recordio import write_index
from dalify.tools.indexing import index_tool

main = index_tool("rec2idx", "a RecordIO file", write_index)

if __name__ == "__main__":
    sys.exit(main())
