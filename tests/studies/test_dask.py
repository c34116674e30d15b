"""Sweeps on a Dask cluster of worker processes: the same answers, whatever becomes of a worker."""

import logging
import os
import signal
from pathlib import Path

import dask
import distributed
import numpy as np
import pytest

import evenkeel as ek
from evenkeel.studies.fan_out import Failure, fan_out
from tests.studies.test_sweep import assert_same
from tests.support.instances import as_cluster, generate

# what Dask and its event loop warn of as processes and sockets come and go is not ours
pytestmark = pytest.mark.filterwarnings("default")
GOALS = ek.Goals(level=0.1)


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes; a task that kills two of them is given up."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            host="127.0.0.1", silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def cluster():
    return as_cluster(generate(P=600, N=30, Z=5, seed=3))


@pytest.fixture(scope="module")
def alone(cluster):
    return ek.sweep(cluster, "node", goals=GOALS)


class Heavy:
    """Counts in a file how often it is unpacked, which is how often it has travelled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return unpacked, (self.path,)


def unpacked(path):
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return Heavy(path)


def plus(common, item):
    if item == "raise":
        raise ek.InvalidInput([])
    return item + 1


def dying_once(path, item):
    """End the whole process, unless it was done before."""
    if item == 7 and not Path(path).exists():
        Path(path).touch()
        os._exit(1)
    return item * item


def always_dying(_, item):
    os._exit(1)


def test_answers_and_their_order_are_those_of_one_thread(client, cluster, alone):
    assert_same(ek.sweep(cluster, "node", client.get_executor(), goals=GOALS), alone)
    again = ek.sweep(cluster, "node", client.get_executor(), goals=ek.Goals(level=None))
    assert again.moves.sum() < alone.moves.sum()


def test_what_all_share_travels_once_to_each_worker(client, tmp_path):
    path = tmp_path / "unpacked"
    found = fan_out(plus, Heavy(str(path)), list(range(200)), client.get_executor())
    assert found == list(range(1, 201))
    times = path.read_text().split()
    workers = [one for one in times if one != str(os.getpid())]
    assert len(workers) == len(set(workers)) == 2


def test_an_error_in_a_worker_is_the_failure_of_its_item(client):
    found = fan_out(plus, 0, [1, "raise", 2], client.get_executor())
    assert found[0] == 2 and found[2] == 3
    assert isinstance(found[1], Failure) and "InvalidInput" in found[1].message


def test_a_worker_killed_in_the_middle_changes_nothing(client, cluster, alone):
    killed = []

    def kill_one(done, total):
        if not killed:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    found = ek.sweep(cluster, "node", client.get_executor(), goals=GOALS, callback=kill_one)
    assert killed
    assert_same(found, alone)


@pytest.mark.long
def test_what_was_shared_is_sent_again_where_its_only_holder_dies(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None,
            host="127.0.0.1", silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        path = str(tmp_path / "died")
        found = fan_out(dying_once, path, list(range(20)), client.get_executor())
        assert Path(path).exists()
        assert found == [item * item for item in range(20)]


@pytest.mark.long
def test_who_kills_every_worker_has_failed(client):
    found = fan_out(always_dying, 0, [1], client.get_executor())
    assert isinstance(found[0], Failure)
    client.wait_for_workers(2, timeout=600)


def test_the_callback_may_end_it(client, cluster, alone):
    def listen(done, total):
        raise StopIteration

    found = ek.sweep(cluster, "node", client.get_executor(), goals=GOALS, callback=listen)
    ran = np.array([one != "not run" for one in found.status])
    assert 0 < ran.sum() < len(ran)
    assert np.array_equal(found.moves[ran], alone.moves[ran])
    # and the workers are there for the next one
    assert_same(ek.sweep(cluster, "node", client.get_executor(), goals=GOALS), alone)


def test_a_time_limit_holds_in_workers(client, cluster):
    given = {"goals": GOALS, "limits": ek.Limits(moves=10**6), "time_limit": 0.0}
    found = ek.sweep(cluster, "node", client.get_executor(), **given)
    assert_same(found, ek.sweep(cluster, "node", **given))


def test_ctrl_c_keeps_what_is_done(client):
    def listen(done, total):
        raise KeyboardInterrupt

    found = fan_out(plus, 0, list(range(400)), client.get_executor(), listen)
    assert any(one is not None for one in found)


@pytest.mark.long
def test_parts_of_one_cluster_are_solved_by_workers(client, cluster):
    alone = ek.solve_in_parts(cluster, 3, goals=GOALS)
    found = ek.solve_in_parts(cluster, 3, client.get_executor(), goals=GOALS)
    assert found.success
    assert np.array_equal(found.placement.node, alone.placement.node)
    assert found.bounds.moves_level == alone.bounds.moves_level
