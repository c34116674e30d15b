"""Damage files for fuzzing: their bytes, values, structure, or archive members."""

import io
import random
import re
import warnings
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
import numpy as np

NUMBERS = (
    b"0", b"-1", b"1e999", b"-0.0", b"0.5", b"NaN", b"null", b"true", b"127", b"32767", b"65536",
    b"2147483648", b"4294967295", b"4294967296", b"9223372036854775808", b"9" * 25, b"9" * 400,
    b"1" * 4301, b"9" * 9000, b"1e308",
)  # fmt: skip
TEXTS = (
    b'""', b'"\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"' + b"x" * 3000 + b'"', b'"node"',
    '"٣"'.encode(), b'"zone=a,zone!=a"', b'"' + b"a=b," * 600 + b'a=b"', b"null", b"7", b"{}",
    b"[]",
    b"[" * 40 + b"]" * 40, b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000,
    b'{"DISK":' * 2000 + b"1" + b"}" * 2000,
)  # fmt: skip
WORDS = (b" " * 2000, b"\t" * 2000, b"\x00", b"\n" * 50, b"\xef\xbb\xbf", b"\r\n", b"Topic: ", b"-")


# what the header of an array is made to say
CLAIMS = (
    b"0", b"1", b"10000000", b"9" * 18, b"9" * 5000, b"'|O'", b"'<U1'", b"'<U99999999'", b"'<f2'",
    b"'<c16'", b"'|S0'", b"'|V8'", b"True", b"(" * 90, b")", b"{", b"0, 99999999999", b"'<M8[ns]'",
)  # fmt: skip

# what is put in the place of an array
ARRAYS = (
    np.zeros(0), np.array(0), np.array(2**62), np.full(40, 32767), np.zeros((3, 0)),
    np.ones((2, 2, 2)), np.array([np.nan, np.inf, -1.0]), np.array(["a", ""]), np.array("text"),
    np.array([{"a": 1}], object), np.array([1 + 2j]), np.array([2**63], np.uint64),
    np.array([b"x"]), np.array(["2026-01-01"], "M8[D]"), np.array([True, False, True]),
    np.zeros(200_000, bool), np.array(32767), np.arange(6).reshape(2, 3),
)  # fmt: skip


def damage_bytes(draw: random.Random, data: bytes) -> bytes:
    """Flip, drop, repeat or insert bytes, or cut the end off."""
    at = draw.randrange(len(data) + 1)
    end = min(at + draw.choice((1, 1, 2, 4, 8, 64, 500)), len(data))
    choice = draw.randrange(6)
    if choice == 0:
        return data[:at] + draw.randbytes(end - at) + data[end:]
    if choice == 1:
        return data[:at] + data[end:]
    if choice == 2:
        return data[:end] + data[at:end] * draw.choice((1, 2, 50)) + data[end:]
    if choice == 3:
        return data[:at] + draw.choice(WORDS) + data[at:]
    if choice == 4:
        start = draw.randrange(len(data) + 1)
        return data[:at] + data[start : start + end - at] + data[end:]
    return data[:at] if draw.random() < 0.3 else data[:at] + b"\xff" + data[end:]


# what is put in the place of a part of a document
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64 - 1, 0.5, -0.0, 1e308, "", "a", "0", "-1", [],
    {}, [[]], [None], [{}], {"": None}, ["a", "a"], [0, "a", None], {"a": {"b": {"c": []}}},
    "x" * 3000, [0] * 3000, {str(i): i for i in range(1000)},
)  # fmt: skip


def damage_structure(draw: random.Random, data: bytes) -> bytes:
    """Drop, repeat, exchange, wrap or replace a part of a document of JSON, or lines of a text."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return damage_lines(draw, data)
    parts = [*_parts(document)]
    if not parts:
        return damage_bytes(draw, data)
    inside, key = draw.choice(parts)
    choice = draw.randrange(7)
    if choice == 0:
        del inside[key]
    elif choice == 1:
        other, place = draw.choice(parts)
        inside[key] = deepcopy(other[place])
    elif choice == 2:
        other, place = draw.choice(parts)
        inside[key], other[place] = deepcopy(other[place]), deepcopy(inside[key])
    elif choice == 3 and isinstance(inside, list):
        inside.insert(draw.randrange(len(inside) + 1), deepcopy(inside[key]))
    elif choice == 3:
        inside[draw.choice(("", "0", "x" * 300, "\x00", *map(str, inside)))] = inside.pop(key)
    elif choice == 4:
        inside[key] = [inside[key]] * draw.choice((1, 1, 2, 300))
    elif choice == 5:
        inside[key] = {draw.choice(("a", "", "name", "items")): inside[key]}
    else:
        inside[key] = draw.choice(VALUES)
    return msgspec.json.encode(document)


def _parts(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each part of a document stands: what holds it, and its key or place there."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            for key in one if isinstance(one, dict) else range(len(one)):
                yield one, key
                waiting.append(one[key])


def damage_lines(draw: random.Random, data: bytes) -> bytes:
    """Drop, repeat or exchange lines of a text, or cells of a line."""
    lines = data.split(b"\n")
    at, other, choice = draw.randrange(len(lines)), draw.randrange(len(lines)), draw.randrange(6)
    if choice == 0:
        del lines[at]
    elif choice == 1:
        lines.insert(other, lines[at])
    elif choice == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        cells = re.split(rb"([,;|\t:]|\s+)", lines[at])
        i, j = draw.randrange(len(cells)), draw.randrange(len(cells))
        if choice == 3:
            del cells[i]
        elif choice == 4:
            cells.insert(i, cells[j])
        else:
            cells[i], cells[j] = cells[j], cells[i]
        lines[at] = b"".join(cells)
    return b"\n".join(lines)


def damage_text(draw: random.Random, data: bytes) -> bytes:
    """Put another number or value in the place of one, or damage its structure or bytes."""
    if draw.random() < 0.3:
        return damage_structure(draw, data)
    pattern, others = draw.choice(
        ((rb"-?\d+(\.\d+)?", NUMBERS), (rb'"[^"\\]*"|true|false|null', TEXTS), (rb"\w+", NUMBERS))
    )
    if draw.random() < 0.25 or not (found := [*re.finditer(pattern, data)]):
        return damage_bytes(draw, data)
    one = draw.choice(found)
    if draw.random() < 0.2:
        other = draw.choice(found)[0]  # what stands elsewhere
    else:
        other = draw.choice(others)
    return data[: one.start()] + other + data[one.end() :]


def damage_archive(draw: random.Random, data: bytes) -> bytes:
    """Damage the members of an archive, what its headers claim, or the archive itself."""
    if draw.random() < 0.25:
        return damage_bytes(draw, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    except Exception:
        return damage_bytes(draw, data)
    if not members:
        return damage_bytes(draw, data)
    i, choice = draw.randrange(len(members)), draw.randrange(9)
    if choice > 6:
        i = max(range(len(members)), key=lambda j: members[j][0] == "meta.npy")
    name, content = members[i]
    if choice == 0:
        content = damage_bytes(draw, content)
    elif choice == 1:
        content = damage_header(draw, content)
    elif choice == 2:
        content = draw.choice(members)[1]
    elif choice == 3:
        name = draw.choice(members)[0]
    elif choice == 4:
        name = damage_bytes(draw, name.encode())[:300].decode("utf-8", "replace")
    elif choice == 5:
        content = npy(draw.choice(ARRAYS))
    elif choice > 6 and name == "meta.npy":
        content = npy(np.frombuffer(damage_text(draw, text_of(content)), np.uint8))
    else:
        content = damage_header(draw, damage_header(draw, content))
    members[i] = (name, content)
    if draw.random() < 0.1:
        del members[draw.randrange(len(members))]
    file = io.BytesIO()
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
    (kind,) = draw.choices(kinds, (90, 8, 2))  # packing takes much longer than reading
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", kind) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for member, inside in members:
            archive.writestr(zipfile.ZipInfo(member[:60_000] or "x"), inside, kind)
    return file.getvalue()


def damage_header(draw: random.Random, content: bytes) -> bytes:
    """Claim another type or shape in the header of an array."""
    found = [*re.finditer(rb"\d+|'[<>|][a-zA-Z]\d+'|True|False|\(|\)|\{", content[10:200])]
    if not found:
        return damage_bytes(draw, content)
    one = draw.choice(found)
    other = draw.choice(CLAIMS)
    header = content[: 10 + one.start()] + other + content[10 + one.end() :]
    if draw.random() < 0.8:  # with a length that fits
        size = int.from_bytes(content[8:10], "little") + len(other) - len(one[0])
        header = header[:8] + (size % 65536).to_bytes(2, "little") + header[10:]
    return header


def npy(array: np.ndarray) -> bytes:
    """Return the bytes of a ``.npy`` file, pickles included."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def text_of(content: bytes) -> bytes:
    """Return the text in a ``.npy`` file; nothing if there is none."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
        return array.tobytes() if array.dtype == np.uint8 else str(array).encode("utf-8", "replace")
    except Exception:
        return b"{}"
