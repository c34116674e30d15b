"""Every kernel that Python calls is held by a test: one that names it, or a twin of its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.parsed import parsed
from tests.support import places

KERNELS = places.ROOT / "kernels" / "evenkeel_kernels"
DECORATORS = {"jit", "no_alloc", "inlined"}

HELD_BY = {
    "ceph/test_crush.py::test_kernel_agrees_with_plain_twin": ["ceph.crush.map_inputs"],
    "ceph/test_placement.py::test_seeds": ["ceph.crush.hash_pairs"],
    "cockroach/test_leases.py::test_a_pass_is_the_plain_rules_range_after_range": [
        "cockroach.leases.transfer_leases"
    ],
    "cockroach/test_leases.py::test_same_target_and_reason_as_the_plain_rules": [
        "cockroach.leases.count_leases",
        "cockroach.leases.lease_reason",
    ],
    "cockroach/test_queue.py::test_complete_ranges_in_trouble_come_to_rest_without_thrash": [
        "cockroach.replicate_queue.work_off"
    ],
    "cockroach/test_scores.py::test_an_addition_is_one_of_the_best": [
        "cockroach.context.tally_all"
    ],
    "cockroach/test_store_rebalancer.py::test_every_lease_that_moves_alone_is_what_the_rules_say": [
        "cockroach.store_rebalancer.rebalance_stores"
    ],
    "cockroach/test_store_rebalancer.py::test_same_lease_target_as_the_plain_rules": [
        "cockroach.store_rebalancer.lease_by_load",
        "cockroach.leases.mean_load",
    ],
    "cockroach/test_store_rebalancer.py::test_same_relocation_as_step_after_step": [
        "cockroach.store_rebalancer.replicas_by_load",
        "cockroach.store_rebalancer.scorer_of",
    ],
    "core/test_eligible_nodes.py::test_reach_is_where_a_guest_fits_and_may_stand": [
        "cost.annealing.fill_reach"
    ],
    "core/test_jenkins_hash.py::test_java_hashes_equal_the_naive_ones": [
        "core.jenkins_hash.java_hashes"
    ],
    "cost/test_local_search.py::test_polishing_lowers_the_cost_and_keeps_the_rules": [
        "cost.two_node_exact.repartition_each"
    ],
    "core/test_jenkins_hash.py::test_map_order_equals_the_naive_one": ["helix.crush.by_bucket"],
    "helix/test_crush.py::test_crush_equals_the_naive_one": [
        "helix.crush.place_in_zones",
        "helix.crush.place_on_nodes",
    ],
    "helix/test_crush.py::test_multiround_equals_the_naive_one": [
        "helix.multiround.place_in_rounds"
    ],
    "helix/test_even_deal.py::test_crushed_equals_the_naive_one": [
        "helix.even_deal.deal_out",
        "helix.even_deal.dealt_hands",
        "helix.even_deal.give_up",
    ],
    "helix/test_even_deal.py::test_each_step_equals_the_naive_one": [
        "helix.even_deal.replace_lost",
        "helix.even_deal.ring_of",
    ],
    "helix/test_waged_golden.py::test_every_golden_step_agrees": [
        "helix.waged.pack_rows",
        "helix.waged.keep_all_valid",
        "helix.waged.keep_and_fill",
        "helix.waged.keep_what_agrees",
        "helix.waged.keep_where_active",
    ],
    "longhorn/test_rules.py::test_tiers": ["longhorn.state.link_all"],
}
"""Kernels that no test names, since their callers stand between: the test that holds each."""


def kernels() -> dict[str, str]:
    """Every kernel that Python may call, by module and name."""
    found = {}
    for file in KERNELS.rglob("*.py"):
        module = ".".join(file.relative_to(KERNELS).with_suffix("").parts)
        for node in parsed(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Name) and one.id in DECORATORS for one in node.decorator_list
            ):
                found[f"{module}.{node.name}"] = node.name
    return found


def used() -> set[str]:
    """What the solver calls of the kernels, by module and name."""
    found = set()
    for file in (places.ROOT / "solver").rglob("*.py"):
        tree = parsed(file.read_text())
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(KERNELS.name):
                inside = (node.module or "").removeprefix(KERNELS.name).removeprefix(".")
                for alias in node.names:
                    whole = f"{inside}.{alias.name}".removeprefix(".")
                    found.add(whole)
                    modules[alias.asname or alias.name] = whole
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(f"{modules.get(node.value.id)}.{node.attr}")
    return found


def words() -> set[str]:
    """Every word of every test and twin."""
    return set().union(*(re.findall(r"[A-Za-z_]\w+", text) for text in texts()))


def texts() -> Iterator[str]:
    """The text of every file of the tests but this one."""
    for file in (places.ROOT / "tests").rglob("*.py"):
        if file.name != "test_kernels.py":
            yield file.read_text()


def test_every_kernel_that_python_calls_is_held_by_a_test():
    known, named = kernels(), words()
    assert len(known) > 100
    bare = {one for one in used() & known.keys() if known[one] not in named}
    held = {one for each in HELD_BY.values() for one in each}
    assert bare == held, sorted(bare ^ held)


def _file(name: str) -> Path:
    """The file of a test, in its system's folder or beside the systems."""
    tests = places.ROOT / "tests"
    return next(file for file in (tests / "systems" / name, tests / name) if file.exists())


def test_the_tests_that_hold_kernels_are_there():
    for test in HELD_BY:
        file, _, name = test.partition("::")
        assert f"def {name}(" in _file(file).read_text(), test
