"""Report the versions of the installation, and compile kernels ahead of time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from evenkeel.methods.registry import MethodName

PACKAGES = ("numpy", "numba", "scipy", "ortools", "msgspec", "rich")


def versions() -> Mapping[str, str]:
    """Tell what a bug report should say: versions, processor, and where kernels are kept.

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

    from evenkeel_kernels.build.inventory import inventory

    found = inventory()
    kept = f"{found.kept} of {found.kernels} compiled"
    return {
        "evenkeel": _version("evenkeel"),
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "processor": found.processor,
        "cores": str(os.cpu_count() or "unknown"),
        "threading": "kernels run in the thread that calls them, without the interpreter's lock",
        "kernels": kept if found.jit else "not compiled: NUMBA_DISABLE_JIT is set",
        "shipped kernels": found.shipped,
        "kernel folder": found.folder or "none: no folder can be written, and none holds any",
    }


def warmup(
    on_step: Callable[[str], object] | None = None,
    methods: "Sequence[MethodName] | None" = ("balance",),
) -> Mapping[str, float]:
    """Compile the kernels that methods need, and keep them, so that no solve waits for it.

    Every method is taken through small clusters of every kind that it may meet: rules, roles,
    groups, lost nodes, tight room, budgets, and, where it minimises, a ``Cost``; ``balance`` with
    plans for its answers. Processes that do this at the same time share the work.

    Parameters
    ----------
    on_step : callable, optional
        Called with the name of each kernel before it is compiled.
    methods : sequence of str, optional
        As in ``solve``; ``balance`` by default, and all that there are for None. Each family of
        methods takes its own time: half a minute or so where nothing is kept yet.

    Returns
    -------
    mapping of str to float
        Seconds that each kernel took, in the order in which they were done; empty if all were kept
        already.

    Raises
    ------
    InvalidInput
        If there is no such method.

    Examples
    --------
    >>> import evenkeel as ek
    >>> first = ek.warmup(methods=["leaders"])
    >>> dict(ek.warmup(methods=["leaders"]))
    {}
    """
    import numpy as np

    from evenkeel.install.warmup_cases import rehearsals
    from evenkeel.methods.registry import METHODS, find
    from evenkeel.model.goals import Goals
    from evenkeel.planning.planner import plan
    from evenkeel.session import HeldCluster
    from evenkeel.solving import solve
    from evenkeel_kernels.build.inventory import Compiled, on_compile

    seconds: dict[str, float] = {}

    def add(compiled: Compiled) -> None:
        before = seconds.get(compiled.kernel, 0.0)
        seconds[compiled.kernel] = before + compiled.seconds

    asked = [
        cast("MethodName", find(name).name) for name in (METHODS if methods is None else methods)
    ]
    with on_compile(on_step, add):
        for name in asked:
            for one in rehearsals(name):
                result = solve(
                    one.cluster, name, goals=one.goals, options=one.options, limits=one.limits,
                    work_limit=one.work,
                )  # fmt: skip
                if name == "balance":
                    plan(one.cluster, result)
                held = HeldCluster(one.cluster.with_placement(result.placement))
                lost = np.zeros(1, np.int32)
                held.lose(name, lost, Goals(level=None))
                held.lose_each(name, [lost], Goals(level=None))
    return seconds


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
