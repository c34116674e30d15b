"""Decode JSON into typed values, and report all errors together."""

import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.systems.documents import SHOWN, Document, quoted

Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
# integers that an array can hold; JSON knows no limit
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

T = TypeVar("T")


def decode_json(faults: FaultList, document: Document, shape: type[T]) -> T | None:
    """Decode JSON into a typed value; None after noting everything that does not fit."""
    try:
        return msgspec.json.decode(document.data, type=shape)
    except msgspec.ValidationError as error:
        misfit = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note_syntax(faults, document, error)
        return None
    try:
        value = msgspec.json.decode(document.data)
    except msgspec.ValidationError as error:
        faults.add(document.name, None, _lowered(str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note_syntax(faults, document, error)
    else:
        before = len(faults.faults)
        note_misfits(faults, f"{document.name}: ", value, shape)
        if len(faults.faults) == before:
            faults.add(document.name, None, _lowered(misfit))
    return None


def note_syntax(faults: FaultList, document: Document, error: Exception) -> None:
    """Note where a text stops being JSON, or why it cannot be taken apart."""
    if isinstance(error, RecursionError):
        faults.add(document.name, quoted(document.data), "is JSON that is nested too deeply")
        return
    if isinstance(error, UnicodeDecodeError):
        document.text(faults)
        return
    found = re.search(r"\(byte (\d+)\)", str(error))
    offset = int(found[1]) if found else len(document.data)
    near = document.data[max(offset - SHOWN // 2, 0) : offset + SHOWN // 2]
    if found is None:
        message = "ends in the middle of its JSON: the file is truncated or empty"
    elif re.search(rb"\b(?:True|False|None)\b|'", document.data[max(offset - 1, 0) : offset + 6]):
        message = "is an object as Python prints it: save it as JSON"
    else:
        message = f"is not JSON: {re.sub(r'^JSON is malformed: | [(]byte.*', '', str(error))}"
    at = f"{document.name}:{document.line_at(offset)}"
    faults.add(at, near.decode("utf-8", "replace"), message)


def note_cut_off(faults: FaultList, document: Document) -> bool:
    """Note JSON that ends too early; whether it does."""
    if not document.data.lstrip().startswith((b"{", b"[")):
        return False
    try:
        msgspec.json.decode(document.data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if isinstance(error, msgspec.DecodeError) and "truncated" in str(error):
            note_syntax(faults, document, error)
            return True
    return False


def note_misfits(faults: FaultList, path: str, value: Any, shape: Any) -> None:
    """Note every part of a decoded value that does not fit a type, each with its JSON path."""
    try:
        msgspec.convert(value, shape, str_keys=True)
        return
    except msgspec.ValidationError as error:
        message = str(error).split(" - at `")[0]
    if typing.get_origin(_plain(shape, value)) is typing.Literal and isinstance(value, str):
        known = [one for one in typing.get_args(_plain(shape, value)) if isinstance(one, str)]
        message = f"is unknown; known: {known}{did_you_mean(value, known)}"
    before = len(faults.faults)
    for inner_path, inner, inner_shape in _parts(faults, path, value, shape):
        note_misfits(faults, inner_path, inner, inner_shape)
    if len(faults.faults) == before:
        faults.add(path.rstrip(": "), quoted(value), _lowered(message))


def encode_json(document: object) -> bytes:
    """Return a document as one line of UTF-8; what JSON cannot hold is an ``InvalidInput``."""
    return _encoded(document) + b"\n"


def encode_rows(rows: Iterable[object]) -> bytes:
    """Return a list with a row per line, which diffs well."""
    return b"[\n" + b",\n".join(map(_encoded, rows)) + b"\n]\n"


def encode_indented(document: object, indent: int) -> bytes:
    """Return a document with a value per line."""
    return msgspec.json.format(_encoded(document), indent=indent) + b"\n"


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None
    except OverflowError as error:
        raise InvalidInput([Fault("cluster", None, f"cannot be written: {error}")]) from None


def _parts(faults: FaultList, path: str, value: Any, shape: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a value with their types; note fields that are missing or unknown."""
    shape = _plain(shape, value)
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if isinstance(value, dict) and isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        for name, field in fields.items():
            if name in value:
                yield _inside(path, name), value[name], field.type
            elif field.required:
                faults.add(_inside(path, name), None, "is missing")
        if shape.__struct_config__.forbid_unknown_fields:
            known = {*fields, shape.__struct_config__.tag_field}
            for name in (name for name in value if name not in known):
                message = f"is unknown; known: {[*fields]}{did_you_mean(name, fields)}"
                faults.add(_inside(path, name), quoted(value[name]), message)
    elif isinstance(value, dict) and origin is dict:
        for key, inner in value.items():
            yield _inside(path, key), inner, arguments[1]
    elif isinstance(value, list) and origin is list:
        for i, inner in enumerate(value):
            yield f"{path}[{i}]", inner, arguments[0]


def _plain(shape: Any, value: Any) -> Any:
    """Strip annotations, and the ``None`` of an optional type where there is a value."""
    if typing.get_origin(shape) is Annotated:
        return _plain(typing.get_args(shape)[0], value)
    if typing.get_origin(shape) in (typing.Union, types.UnionType) and value is not None:
        rest = [one for one in typing.get_args(shape) if one is not type(None)]
        if len(rest) == 1:
            return _plain(rest[0], value)
    return shape


def _inside(path: str, name: str) -> str:
    name = str(quoted(name))
    return f"{path}{name}" if path.endswith(": ") or not path else f"{path}.{name}"


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
