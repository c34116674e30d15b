"""Format shares, ratios, amounts and durations as text."""

import numpy as np

LARGE = 1e7
LEAST_EXPONENT = 999_999.5  # from here on six digits are written with an exponent
# from which amount on prefixes are written, and which
PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))


BINARY = tuple(
    (prefix, 2.0**power) for prefix, power in zip("PTGMK", range(50, 0, -10), strict=True)
)


def percent(share: float) -> str:
    """Write a share of a capacity; a dash where there is none to speak of."""
    return f"{100.0 * share:,.1f}%" if np.isfinite(share) else "∞" if share > 0 else "-"


def fine_percent(share: float) -> str:
    """Write a share of a capacity to two places, and one that these do not show to two digits.

    >>> fine_percent(0.04821), fine_percent(2.214e-05), fine_percent(3e-07), fine_percent(0.0)
    ('4.82%', '0.0022%', '0.00003%', '0.00%')
    """
    if not 0.0 < share < 1e-4:
        return f"{share:.2%}"
    return f"{np.format_float_positional(100.0 * share, precision=2, fractional=False, trim='-')}%"


def ratio(value: float) -> str:
    """Write a ratio of utilisations."""
    return f"{value:.3f}" if np.isfinite(value) else "∞"


def number(value: float) -> str:
    """Write a number to four places."""
    return f"{value:.4f}" if np.isfinite(value) else "∞"


def amount(value: float) -> str:
    """Write an amount, with a prefix where it would have more digits than anybody counts."""
    if not np.isfinite(value):
        return "∞"
    if value < LARGE:
        return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
    value = float(f"{value:.4g}")  # 1,000 of a unit after rounding is one of the next
    prefix, unit = next(((p, u) for p, u in PREFIXES if value >= u), PREFIXES[-1])
    return f"{value / unit:.4g} {prefix}" if value < 1e3 * PREFIXES[0][1] else f"{value:.3g}"


def binary(value: float) -> str:
    """Write bytes as systems do that count in powers of 1,024.

    >>> binary(20.0 * 2**30), binary(1_500.0)
    ('20.0 GiB', '1.5 KiB')
    """
    prefix, unit = next(((p, u) for p, u in BINARY if value >= 0.99995 * u), BINARY[-1])
    return f"{value / unit:,.1f} {prefix}iB"


def data(value: float, dimension: str) -> str:
    """Write an amount of data with its unit: bytes where the dimension is called so, else none."""
    if dimension != "bytes":
        return amount(value)
    written = amount(value)
    return f"{written}B" if " " in written else f"{written} B"


def data_of(value: float, dimension: str) -> str:
    """Write an amount of data with its unit, or else with the dimension that it is counted in.

    >>> data_of(1.6133e12, "bytes"), data_of(1.6133e12, "disk")
    ('1.613 TB', '1.613 T of disk')
    """
    written = data(value, dimension)
    return written if dimension == "bytes" else f"{written} of {dimension}"


def quantity(value: float) -> str:
    """Write a number to six digits, and a larger one as an amount, never with an exponent."""
    size = abs(value)
    text = f"{size:,.6g}" if size < LEAST_EXPONENT else amount(size)
    return f"-{text}" if value < 0.0 else text


def duration(seconds: float) -> str:
    """Write seconds in a unit that suits them."""
    if seconds < 1.0:
        return f"{1000 * seconds:,.1f} ms"
    if seconds < 600.0:
        return f"{seconds:,.2f} s"
    return f"{seconds / 60:,.1f} min" if seconds < 7200.0 else f"{seconds / 3600:,.1f} h"
