"""Changes to bytes, strings and JSON values: at random places, and at the fields that a format declares."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

INTERESTING = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 100, 127, 128, 129, 255, 256, 257, 511, 1000, 1024]
INTERESTING += [4095, 4096, 10_000, 16_383, 16_384, 32_767, 32_768, 65_535, 65_536, 100_000, (1 << 24) - 1, 1 << 24]
INTERESTING += [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
_TEXT_NUMBERS = ["0", "1", "-1", "2", "255", "65536", "2147483647", "2147483648", "-2147483649", "4294967296"]
_TEXT_NUMBERS += [
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1" + "0" * 30,
    "1e308",
    "1e400",
    "1e999999999",
]
_TEXT_NUMBERS += ["nan", "inf", "-inf", "0.5", "-0.0", "1_0", "0x10", "", " ", "\u0661", "1.", "--1", "1" * 5000]
_STRINGS = [
    "",
    "\0",
    "..",
    "../../x",
    "/etc/hostname",
    "http://127.0.0.1:9/x",
    "\ud800",
    "a" * 5000,
    "\n",
    "é",
    "*",
    "-1",
]
_STRINGS += ["file:///etc/hostname", "nan", "%s%n", "☃", "con", ".", "/", "\\", "a\0b"]
_LONGEST = 1 << 20


class Field(NamedTuple):
    """A field of a file that describes other parts of the file.

    Attributes:
        start: of its bytes.
        size: number of bytes.
        kind: ``little`` or ``big`` for integers, ``octal`` for octal digits, ``text`` for a number as text.
    """

    start: int
    size: int
    kind: str


def numbers_in_text(data: bytes, start: int = 0, stop: int | None = None) -> list[Field]:
    """Return the decimal numbers of a text as fields."""
    stop = len(data) if stop is None else stop
    return [
        Field(found.start(), found.end() - found.start(), "text")
        for found in re.compile(rb"-?\d+(?:\.\d+)?").finditer(data, start, stop)
    ]


def mutated_bytes(
    data: bytes, other: bytes, fields: Sequence[Field], tokens: Sequence[bytes], rng: random.Random
) -> bytes:
    """Return bytes with one or a few changes.

    Args:
        data: what is changed.
        other: of the same format, for splices.
        fields: places of lengths, counts and extents in ``data``.
        tokens: bytes with a meaning in the format.
        rng: decides.
    """
    changed = bytearray(data)
    # Positions of text fields move when an earlier one changes: only the first change uses the fields as they are.
    for number in range(1 + min(int(rng.expovariate(0.9)), 8)):
        if fields and rng.random() < (0.6 if number == 0 else 0.3):
            field = rng.choice(fields)
            if field.start + field.size <= len(changed):
                _change_field(changed, field, rng)
        else:
            rng.choice(_CHANGES)(changed, other, tokens, rng)
    return bytes(changed[:_LONGEST])


def _change_field(data: bytearray, field: Field, rng: random.Random) -> None:
    span = slice(field.start, field.start + field.size)
    if field.kind == "text":
        data[span] = rng.choice(_TEXT_NUMBERS).encode()
        return
    if field.kind == "octal":
        choices = [b"7" * (field.size - 1), b"0" * (field.size - 1), b"-1", b" ", b"\xff" * field.size, b"9", b"1000"]
        choices += [b"\x80" + b"\0" * (field.size - 2) + b"\x7f", b"%o" % rng.randrange(1 << 20)]
        data[span] = rng.choice(choices)[: field.size].ljust(field.size, b"\0")
        return
    order = "little" if field.kind == "little" else "big"
    value = int.from_bytes(data[span], order)
    draw = rng.random()
    if draw < 0.35:
        value += rng.choice((-1, 1)) * rng.choice((1, 1, 1, 2, 4, 8, rng.randrange(1, 64)))
    elif draw < 0.5:
        value = value << rng.randrange(1, 12) if rng.random() < 0.6 else value >> 1
    elif draw < 0.9:
        value = rng.choice(INTERESTING) + (rng.choice((-1, 0, 0, 1)))
    else:
        value = rng.getrandbits(8 * field.size)
    data[span] = (value % (1 << 8 * field.size)).to_bytes(field.size, order)


def _window(data: bytearray, rng: random.Random) -> slice:
    start = rng.randrange(len(data) + 1)
    return slice(start, start + rng.choice((1, 2, 4, 8, 16, rng.randrange(1, 65), rng.randrange(1, len(data) + 2))))


def _flip_bit(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 255, 127, 128, rng.randrange(256)))


def _set_integer(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    size = rng.choice((1, 2, 4, 8))
    if len(data) >= size:
        # Headers are where integers mean most.
        start = rng.randrange(min(len(data) - size + 1, rng.choice((64, 512, len(data)))))
        value = rng.choice(INTERESTING) % (1 << 8 * size)
        data[start : start + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _truncate(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    cut = rng.randrange(len(data) + 1) if rng.random() < 0.6 else max(0, len(data) - rng.randrange(1, 17))
    del data[cut:]


def _delete(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    del data[_window(data, rng)]


def _duplicate(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    piece = bytes(data[_window(data, rng)])
    place = rng.randrange(len(data) + 1)
    data[place:place] = piece * rng.choice((1, 1, 1, 2, 16))


def _zero(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    window = _window(data, rng)
    data[window] = rng.choice((b"\0", b"\xff")) * len(data[window])


def _scramble(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    window = _window(data, rng)
    data[window] = rng.randbytes(len(data[window]))


def _insert(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.choice(tokens) if tokens and rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 33))


def _overwrite(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    if tokens and data:
        token = rng.choice(tokens)
        place = rng.randrange(len(data))
        data[place : place + len(token)] = token


def _splice(data: bytearray, other: bytes, tokens: Sequence[bytes], rng: random.Random) -> None:
    if rng.random() < 0.5:  # the beginning of one, the end of the other
        data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]
    elif other:
        start = rng.randrange(len(other))
        data[_window(data, rng)] = other[start : start + rng.randrange(1, 65)]


_CHANGES = [_flip_bit, _flip_bit, _set_byte, _set_byte, _set_integer, _set_integer, _truncate, _delete, _duplicate]
_CHANGES += [_zero, _scramble, _insert, _overwrite, _splice]


# -- JSON --------------------------------------------------------------------------------------------------------------


def hostile_value(rng: random.Random, like: Any = None) -> Any:
    """Return an unexpected JSON value, half of the time of the same type."""
    numbers: list[Any] = [0, 1, -1, 2, 255, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, 10**12, 10**30, 0.5, -0.0, 1e9]
    numbers += [1e308, float("nan"), float("inf"), -float("inf")]
    if isinstance(like, str) and rng.random() < 0.5:
        return rng.choice([*_STRINGS, like[: rng.randrange(len(like) + 1)], like * 2, like.upper()])
    if isinstance(like, (int, float)) and rng.random() < 0.7:
        return rng.choice([*numbers, like + 1, like - 1, like * 2, -like, float(like), str(like)])
    return rng.choice([None, True, False, [], {}, [[]], [None], {"": None}, *numbers, *_STRINGS, _deep(rng)])


def _deep(rng: random.Random) -> Any:
    value: Any = rng.choice((None, 1, "x"))
    for _ in range(rng.choice((3, 40, 200))):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def mutated_json(text: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return a JSON text with one or a few values, keys or items changed; strings that are not JSON change as bytes."""
    try:
        document = json.loads(text)
        donor = json.loads(other)
    except (ValueError, RecursionError):
        return mutated_bytes(text, other, numbers_in_text(text), _JSON_TOKENS, rng)
    if rng.random() < 0.12:
        return mutated_bytes(text, other, numbers_in_text(text), _JSON_TOKENS, rng)
    for _ in range(1 + min(int(rng.expovariate(0.9)), 6)):
        document = _changed_json(document, donor, rng)
    written = json.dumps(document, ensure_ascii=rng.random() < 0.8, indent=rng.choice((None, None, 1)))
    return written.encode(errors="surrogatepass")[:_LONGEST]


_JSON_TOKENS = [b"null", b"NaN", b"Infinity", b"-Infinity", b"[", b"]", b"{", b"}", b'"', b",", b":", b"1e999", b"\\u"]
_JSON_TOKENS += [b"\\ud800", b"\xef\xbb\xbf", b"\xff", b"\0", b"//", b"[" * 3000, b"true", b"\n"]


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    waiting = [value]
    while waiting and len(found) < 5000:
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, item in items:
            found.append((holder, key))
            if isinstance(item, (dict, list)) and item:
                waiting.append(item)
    return found


def _changed_json(document: Any, donor: Any, rng: random.Random) -> Any:
    places = _places(document, []) if isinstance(document, (dict, list)) else []
    if not places or rng.random() < 0.01:
        return hostile_value(rng, document)
    holder, key = rng.choice(places)
    draw = rng.random()
    if draw < 0.55:
        holder[key] = hostile_value(rng, holder[key])
    elif draw < 0.67:
        del holder[key]
    elif draw < 0.77 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * rng.choice((1, 2, 30))
    elif draw < 0.8:
        holder[key] = [holder[key]]
    elif draw < 0.9:
        others = _places(donor, []) if isinstance(donor, (dict, list)) else []
        if others:
            source, place = rng.choice(others)
            holder[key] = json.loads(json.dumps(source[place]))  # a copy: nothing may be changed twice
    elif isinstance(holder, dict):
        new = rng.choice([*_STRINGS[:6], *map(str, holder)])
        holder[new] = holder[key] if rng.random() < 0.5 else holder.pop(key)
    else:
        one, two = rng.randrange(len(holder)), rng.randrange(len(holder))
        holder[one], holder[two] = holder[two], holder[one]
    return document
