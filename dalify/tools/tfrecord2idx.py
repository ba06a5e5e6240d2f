"""Write the index of a TFRecord file, in the format of DALI's tool of this name.

``tfrecord2idx FILE INDEX``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dalify.base.errors import DalifyError
from dalify.formats.records.tfrecord import write_index

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write an index; return the exit status.

    Args:
        arguments: command-line arguments; None: those of the process.
    """
    parser = argparse.ArgumentParser(prog="tfrecord2idx", description="Write the index of a TFRecord file.")
    parser.add_argument("file", help="the TFRecord file")
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
