"""Write the index of a TFRecord file, in the format of DALI's tool of this name.

``tfrecord2idx FILE INDEX``.
"""

from __future__ import annotations

import sys

from dalify.formats.records.tfrecord import write_index
from dalify.tools.indexing import index_tool

main = index_tool("tfrecord2idx", "a TFRecord file", write_index)

if __name__ == "__main__":
    sys.exit(main())
