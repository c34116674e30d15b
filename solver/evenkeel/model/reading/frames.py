"""Read and make frames of pandas, polars or pyarrow, through narwhals."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import Fault, InvalidInput

Backend = Literal["pandas", "polars", "pyarrow"]  # packages that make frames
# packages that make frames; by default the first that is installed
BACKENDS: tuple[Backend, ...] = get_args(Backend)

Frame = Any  # a frame of pandas, polars, pyarrow, or of whatever else narwhals knows


def narwhals() -> Any:
    """Import narwhals; raise with the install command if it is missing."""
    try:
        from narwhals import stable
    except ImportError:
        message = "are read and made by narwhals: pip install 'evenkeel[frames]'"
        raise InvalidInput([Fault("frames", "narwhals", message)]) from None
    return stable.v1


def series_of(path: str, frame: Frame) -> dict[str, Any]:
    """Return the columns of a frame by their names; ``InvalidInput`` if it is none."""
    made = narwhals()
    try:
        given = made.from_native(frame, eager_only=True, pass_through=True)
    except made.exceptions.DuplicateError:
        names = [*map(str, getattr(frame, "columns", ()))]
        raise InvalidInput([Fault(path, names, "names a column twice")]) from None
    if not hasattr(given, "iter_columns"):
        message = "must be a frame of pandas, polars or pyarrow; a lazy one has to be collected"
        raise InvalidInput([Fault(path, type(frame).__name__, message)])
    return {column.name: column for column in given.iter_columns()}


def frame_of(
    columns: Mapping[str, NDArray[Any] | Sequence[Any]], backend: Backend | None = None
) -> Frame:
    """Make a frame of columns: arrays of numbers, and lists of texts or None."""
    if backend is not None and (not isinstance(backend, str) or backend not in BACKENDS):
        raise InvalidInput([Fault("backend", backend, f"must be one of {[*BACKENDS]}")])
    made = narwhals()
    for name in BACKENDS if backend is None else (backend,):
        try:
            typed = {
                title: column if isinstance(column, np.ndarray)
                else made.new_series(title, [*column], made.String, backend=name)
                for title, column in columns.items()
            }  # fmt: skip
            return made.from_dict(typed, backend=name).to_native()
        except ModuleNotFoundError:
            continue
    message = f"is not installed: pip install {backend or BACKENDS[0]}"
    raise InvalidInput([Fault("backend", backend, message)])


def numbers_of(column: Any) -> NDArray[np.float64] | None:
    """Return a column of numbers as they are, NaN for none; None if it holds anything else."""
    made = narwhals()
    if column.dtype.is_numeric():
        found = column.to_numpy()
        if found.dtype == object or (found.dtype.kind in "iu" and column.null_count()):
            found = column.cast(made.Float64).to_numpy()
        return np.asarray(found, np.float64)
    return None


def texts_of(column: Any) -> list[str]:
    """Return a column as texts, "" for none; whole numbers are written without a point."""
    cells = column.to_list()
    if not {*map(type, cells)} <= {str, int, type(None)}:  # 1, 1.0 and True are one key
        return [_text(value) for value in cells]
    texts = {value: _text(value) for value in {*cells}}
    return [*map(texts.__getitem__, cells)]


def lists_of(column: Any) -> list[list[str]]:
    """Return the texts of each cell of a column of lists, one "" where it has none."""
    cells = column.to_list()
    of = (list, tuple, np.ndarray)
    if not any(isinstance(cell, of) for cell in cells):
        return []
    return [
        # of pairs, of a node and a shard within it, the first
        [_text(one[0] if isinstance(one, tuple) and len(one) == 2 else one) for one in cell] or [""]
        if isinstance(cell, of)
        else [_text(cell)]
        for cell in cells
    ]


def numbered_texts(column: Any) -> tuple[list[str], NDArray[np.int64]] | None:
    """Return distinct values of a column, by first row, and the value of each cell; None if not."""
    # a text may come twice, since blanks around it do not count
    made = narwhals()
    if column.dtype != made.String and not column.dtype.is_integer():
        return None
    try:
        coded = column.to_arrow().dictionary_encode("encode")
    except (ImportError, ValueError, TypeError):
        return None
    coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
    if not hasattr(coded, "indices"):
        return None
    texts = [*map(_text, coded.dictionary.to_pylist())]
    return texts, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    unlike = value != value  # of NaN; NA of pandas compares as itself
    if value is None or unlike is value or unlike:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
