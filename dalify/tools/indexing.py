"""The main function of the tools that write index files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from dalify.base.errors import DalifyError


def index_tool(
    program: str,
    container: str,
    write_index: Callable[[str, str], int],
    counted: str = "records",
    default_index: Callable[[str], str] | None = None,
) -> Callable[..., int]:
    """Return the main function of a command-line tool, ``program FILE INDEX``.

    Args:
        program: name of the tool.
        container: kind of file, with an article.
        write_index: writes the index of a file and returns the number of its records.
        counted: plural name of the records.
        default_index: returns the path of the index of a file if the user does not specify it; None: the user must.
    """

    def main(arguments: Sequence[str] | None = None) -> int:
        """Write an index; return the exit status.

        Args:
            arguments: command-line arguments; None: the arguments of the process.
        """
        parser = argparse.ArgumentParser(prog=program, description=f"Write the index of {container}.")
        parser.add_argument("file", help="the file to read")
        parser.add_argument("index", help="the index file to write", nargs="?" if default_index else None)
        given = parser.parse_args(arguments)
        index: str | None = given.index
        if index is None:
            assert default_index is not None, "dalify bug: the parser requires an index without a default"
            index = default_index(given.file)
        try:
            count = write_index(given.file, index)
        except DalifyError as error:
            print(error, file=sys.stderr)
            return 1
        except OSError as error:
            print(f"cannot write the index {index!r}: {error.strerror or error}.", file=sys.stderr)
            return 1
        print(f"{count} {counted}")
        return 0

    return main
