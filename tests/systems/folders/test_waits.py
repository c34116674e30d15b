"""Waits of a run: it says what it waits for, why it gives up, and what can be done then."""

import json
import re

import pytest

import evenkeel as ek
from tests.public.case import PUBLIC
from tests.support.systems.bench import System
from tests.support.systems.worlds import WORLDS
from tests.systems.folders.test_kafka_folder import TOOLS, folder_of, skewed
from tests.systems.folders.test_rabbitmq_folder import plan, system

__all__ = ["plan", "system"]

FOREVER = 10**6
IMPATIENT = {"PATIENCE": "0.6", "REPORT": "0.3"}


@pytest.fixture
def kafka(tmp_path):
    return System(tmp_path / "kafka", "kafka", TOOLS, skewed(FOREVER))


def first_of(folder):
    """The partitions of the first wave, and the brokers that join them."""
    wave = json.loads(next(iter(sorted(folder.glob("waves/*.reassignment.json")))).read_text())
    return [(f"{one['topic']}-{one['partition']}", one["replicas"]) for one in wave["partitions"]]


def verify_fails(kafka, commands):
    """Let the tool run some commands of a shell before it verifies."""
    tool = kafka.bin / "kafka-reassign-partitions.sh"
    first = f'case "$*" in *--verify*) {commands} ;; esac\nexec'
    tool.write_text(tool.read_text().replace("exec", first, 1))


def test_kafka_says_what_it_waits_for_and_what_to_do(kafka):
    _, folder = folder_of(kafka)
    done = kafka.run(folder, **IMPATIENT)
    assert done.returncode == 1
    count = len(first_of(folder))
    said = f"--verify says of {count} partitions that they are in progress"
    assert re.search(f"waiting: Kafka copies .*{said}", done.stdout)
    assert re.search(f"given up after 0.6 s: Kafka copies .*--cancel.*{said}", done.stderr)
    for name, _ in first_of(folder):
        assert f"Reassignment of partition {name} is still in progress." in done.stderr


def test_a_broker_that_dies_meanwhile_ends_the_wait_by_its_name(kafka):
    _, folder = folder_of(kafka)
    before = kafka.state["partitions"]
    name, nodes = first_of(folder)[0]
    dies = next(str(b) for b in nodes if b not in before[name]["replicas"])
    kafka.state = kafka.state | {"dies": dies}
    done = kafka.run(folder, REPORT="0.1", PATIENCE="500")
    assert done.returncode == 3
    assert f"{dies}: is dead, and the plan needs it" in done.stderr


def test_what_verify_says_is_told_where_it_fails(kafka):
    _, folder = folder_of(kafka)
    verify_fails(kafka, 'echo "no such cluster"; exit 1')
    done = kafka.run(folder)
    assert done.returncode == 1
    assert "no such cluster" in done.stderr


def test_a_verify_that_fails_once_is_tried_again(kafka):
    _, folder = folder_of(kafka)
    mark = kafka.folder / "failed"
    verify_fails(kafka, f"[ -e {mark} ] || {{ touch {mark}; exit 1; }}")
    kafka.state = kafka.state | {"pace": 1}
    done = kafka.run(folder)
    assert mark.exists()
    assert done.returncode == 0, done.stderr


def test_a_broker_that_dies_as_verify_fails_is_named(kafka):
    _, folder = folder_of(kafka)
    before = kafka.state["partitions"]
    name, nodes = first_of(folder)[0]
    dies = next(str(b) for b in nodes if b not in before[name]["replicas"])
    verify_fails(kafka, "exit 1")
    kafka.state = kafka.state | {"dies": dies}
    done = kafka.run(folder)
    assert done.returncode == 3
    assert f"{dies}: is dead, and the plan needs it" in done.stderr


REFUSED = PUBLIC / "kafka/refused-by-execute"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("another-runs", "Use --additional to override this"),
        ("unregistered-broker", "Error: Unknown broker id 99"),
        ("unknown-log-dir", "The user-specified log directory is not found in the broker config."),
        ("too-few-log-dirs", "Error: Size of replicas list [1, 2, 3] is different from size of"),
        ("a-broker-twice", "orders-0 contains multiple entries for 2"),
    ],
)
def test_what_execute_refuses_is_told_with_its_reason(kafka, file, reason):
    _, folder = folder_of(kafka)
    tool = kafka.bin / "kafka-reassign-partitions.sh"
    refuses = f'case "$*" in *--execute*) cat {REFUSED / file}.txt; exit 1 ;; esac\nexec'
    tool.write_text(tool.read_text().replace("exec", refuses, 1))
    done = kafka.run(folder, THROTTLE="1000")
    assert done.returncode == 1
    assert reason in done.stderr
    assert "failed with exit code 1" in done.stderr
    assert "left with the throttle on copies" in done.stderr


def test_rabbitmq_names_queue_and_member(system, plan):
    system.state = system.state | {"pace": FOREVER}
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder, **IMPATIENT)
    assert done.returncode == 1
    assert "has not caught up" in done.stdout
    assert "given up after 0.6 s: queue" in done.stderr
    waited = done.stdout.partition("waiting: queue ")[2].partition(" has not caught up")[0]
    assert waited and f"queue {waited} has not caught up" in done.stderr


@pytest.mark.parametrize("name", ["elasticsearch", "longhorn"])
def test_others_say_what_they_wait_for(name, tmp_path):
    world = WORLDS[name](tmp_path, pace=FOREVER)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    done = world.run(folder, **IMPATIENT)
    assert done.returncode == 1
    assert "waiting: " in done.stdout
    assert "given up after 0.6 s: " in done.stderr
