"""Parse an operator's docstring (Google sections, double backticks) and convert it to Markdown."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

_SECTIONS = re.compile(r"^(Args|Returns|Raises|Example):\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: ?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Documentation:
    """A parsed docstring.

    Attributes:
        summary: the first sentence.
        text: everything before the sections, paragraphs separated by empty lines.
        arguments: meaning of inputs and arguments by name.
        returns: the section as one paragraph.
        raises: error classes and their conditions.
        example: the code, without prompts and directives.
    """

    summary: str
    text: str
    arguments: dict[str, str]
    returns: str
    raises: list[tuple[str, str]]
    example: str


def documentation_of(doc: str) -> Documentation:
    """Parse a docstring."""
    head, *rest = _SECTIONS.split(doc)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    text = _markdown(head)
    first = " ".join(text.partition("\n\n")[0].split())
    arguments: dict[str, str] = {}
    for names, meaning in _entries(sections.get("Args", "")):
        for name in names.split(", "):
            arguments[name.lstrip("*")] = meaning
    return Documentation(
        summary=re.split(r"(?<=[^.])\.(?:\s|$)", first)[0],
        text=text,
        arguments=arguments,
        returns=_joined(sections.get("Returns", "")),
        raises=_entries(sections.get("Raises", "")),
        example=_program(sections.get("Example", "")),
    )


def _markdown(text: str) -> str:
    paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return "\n\n".join(paragraphs).replace("``", "`")


def _joined(section: str) -> str:
    return _markdown(textwrap.dedent(section)).replace("\n\n", " ")


def _entries(section: str) -> list[tuple[str, str]]:
    """Return the entries of a section: names, and description with continuation lines."""
    entries: list[tuple[str, str]] = []
    for block in re.split(r"\n(?=\S)", textwrap.dedent(section).strip("\n")):
        found = _ENTRY.match(block)
        if found:
            entries.append((found[1], _joined(found[2])))
    return entries


def _program(section: str) -> str:
    lines = [re.sub(r"\s*# doctest: \+SKIP", "", line) for line in textwrap.dedent(section).strip("\n").splitlines()]
    return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
