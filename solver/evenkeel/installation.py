"""The installation: what it runs on, and having its kernels compiled before they are needed."""

from collections.abc import Callable, Mapping

PACKAGES = ("numpy", "numba", "scipy", "ortools", "msgspec", "rich")


def versions() -> Mapping[str, str]:
    """Tell what a report of a fault should say: versions, processor, and where kernels are kept.

    Returns
    -------
    mapping of str to str
        Texts by name, in an order to be read in.

    Examples
    --------
    >>> import evenkeel as ek
    >>> sorted(ek.versions())[:2]
    ['cores', 'evenkeel']
    """
    import os
    import platform
    import sys

    from evenkeel_kernels.inventory import inventory

    found = inventory()
    kept = f"{found.kept} of {found.kernels} compiled and kept"
    return {
        "evenkeel": _version("evenkeel"),
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "processor": found.processor,
        "cores": str(os.cpu_count() or "unknown"),
        "threading": "kernels run in the thread that calls them, without the interpreter's lock",
        "kernels": kept if found.jit else "not compiled: NUMBA_DISABLE_JIT is set",
        "kernel folder": found.folder or "none: no folder can be written",
    }


def warmup(told: Callable[[str], object] | None = None) -> Mapping[str, float]:
    """Compile every kernel that ``solve`` needs to meet ``Goals`` by ``balance``, and keep them.

    What minimising a ``Cost`` needs beyond that is compiled when it is first used.

    Parameters
    ----------
    told : callable, optional
        Called with the name of each kernel before it is compiled.

    Returns
    -------
    mapping of str to float
        Seconds that each kernel took, in the order in which they were done; empty if all were kept
        already.

    Examples
    --------
    >>> import evenkeel as ek
    >>> first = ek.warmup()
    >>> dict(ek.warmup())
    {}
    """
    from evenkeel.model.goals import Goals
    from evenkeel.simulate.scenarios import expansion
    from evenkeel.solve import solve
    from evenkeel_kernels.inventory import Compiled, on_compile

    seconds: dict[str, float] = {}

    def add(compiled: Compiled) -> None:
        before = seconds.get(compiled.kernel, 0.0)
        seconds[compiled.kernel] = before + compiled.seconds

    cluster = expansion(partitions=200, nodes=25, zones=5)
    with on_compile(told, add):
        for goals in (Goals(level=0.04), Goals(level=0.0, leaders=0.0)):
            solve(cluster, goals=goals, work_limit=10_000)
    return seconds


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
