"""Write the index of a RecordIO file, in the format of DALI's tool of this name.

``rec2idx FILE INDEX``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dalify.base.errors import DalifyError
from dalify.formats.records.recordio import write_index

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write an index; return the exit status.

    Args:
        arguments: command-line arguments; None: those of the process.
    """
    parser = argparse.ArgumentParser(prog="rec2idx", description="Write the index of a RecordIO file.")
    parser.add_argument("file", help="the RecordIO file")
    parser.add_argument("index", help="the index file to write")
    given = parser.parse_args(arguments)
    try:
        count = write_index(given.file, given.index)
    except (DalifyError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
