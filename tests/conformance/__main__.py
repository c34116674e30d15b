"""``python -m tests.conformance [--answers DIR] FILE_OR_FOLDER...``: replay golden files.

Prints one line per file. The exit status is 0 when every expected answer agrees, 1 when one
disagrees, and 2 when a file cannot be read, is of no known schema, or breaks its replay.
"""

import argparse
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from tests.conformance import documents, schemas
from tests.conformance.protocol import Case, Document, Replay, Schema

AGREES, DISAGREES, BROKEN = 0, 1, 2
SHOWN = 10


class Refused(Exception):
    """A document that not exactly one schema recognises, or that holds no case."""


def known_schemas() -> list[Schema]:
    """Every module of `tests.conformance.schemas`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(schemas.__path__))
    modules = [importlib.import_module(f"{schemas.__name__}.{name}") for name in names]
    return [cast(Schema, module) for module in modules]


def replay_all(paths: Sequence[Path], known: Sequence[Schema], answers: Path | None = None) -> int:
    """Replay every path, print a verdict for each, and return the exit status."""
    status = AGREES
    written: set[Path] = set()
    for path in paths:
        files = list(_files(path, known))
        if not files:
            print(f"{path.name}: nothing to replay")
            status = BROKEN
        for file, place in files:
            target = answers / place if answers else None
            if target in written:
                print(f"{file.name}: another file of that name was answered already")
                status = BROKEN
                continue
            if target:
                written.add(target)
            status = max(status, _replay_one(file, known, target))
    return status


def _files(path: Path, known: Sequence[Schema]) -> Iterator[tuple[Path, Path]]:
    """Each file to replay with its place among the answers.

    A folder is one document where a schema recognises it as a whole, else all it holds. What a
    folder holds keeps its place in the folder.
    """
    if not path.is_dir():
        yield path, Path(path.name)
        return
    if _is_whole(path, known):
        yield path, Path()
        return
    for entry in sorted(path.iterdir()):
        if entry.is_dir() or documents.is_document(entry):
            inside = Path(entry.name) if entry.is_dir() else Path()
            for file, place in _files(entry, known):
                yield file, inside / place
        else:
            print(f"{entry.name}: not a golden file, left alone")


def _is_whole(folder: Path, known: Sequence[Schema]) -> bool:
    try:
        document = documents.load(folder)
    except documents.Unreadable:
        return True  # the replay of the whole then says why
    return bool(document) and any(schema.recognises(folder, document) for schema in known)


def _replay_one(path: Path, known: Sequence[Schema], target: Path | None) -> int:
    try:
        document = documents.load(path)
        replay = _schema_of(path, document, known).replay(path, document)
        if not replay.cases:
            raise Refused("holds no case")
        if target:
            documents.write(replay.answers, path, target)
    except (documents.Unreadable, Refused) as problem:
        print(f"{path.name}: {problem}")
        return BROKEN
    except Exception as error:
        print(f"{path.name}: the replay broke off: {type(error).__name__}: {error}", flush=True)
        traceback.print_exc()
        return BROKEN
    return _report(path.name, replay)


def _schema_of(path: Path, document: Document, known: Sequence[Schema]) -> Schema:
    claims = [schema for schema in known if schema.recognises(path, document)]
    if not claims:
        names = ", ".join(schema.NAME for schema in known) or "none"
        raise Refused(f"unknown schema (known: {names})")
    if len(claims) > 1:
        raise Refused(f"claimed by several schemas: {', '.join(s.NAME for s in claims)}")
    return claims[0]


def _report(name: str, replay: Replay) -> int:
    print(f"{name}: {_verdict(replay.cases)}")
    for figure in replay.figures:
        print(f"  {figure}")
    wrong = [case for case in replay.cases if case.agrees is False]
    for case in wrong[:SHOWN]:
        print(f"  {case.name}: {case.detail or 'disagrees'}")
    if len(wrong) > SHOWN:
        print(f"  and {len(wrong) - SHOWN} more cases")
    return DISAGREES if wrong else AGREES


def _verdict(cases: Sequence[Case]) -> str:
    judged = [case.agrees for case in cases if case.agrees is not None]
    computed = len(cases) - len(judged)
    if not judged:
        return f"{computed} cases computed, none has an expected answer"
    verdict = f"{sum(judged)} of {len(judged)} cases agree"
    return f"{verdict}, {computed} more computed" if computed else verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and replay."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    parser.add_argument(
        "--answers",
        type=Path,
        metavar="DIR",
        help="write a copy of each file in which what was expected is what was computed",
    )
    options = parser.parse_args(arguments)
    return replay_all(options.paths, known_schemas(), options.answers)


if __name__ == "__main__":
    sys.exit(main())
