"""Racks, states and capacities of brokers agree in any order of files, or name both places."""

import json
from itertools import permutations

import pytest

import evenkeel as ek
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry
from evenkeel.systems.kafka.format import left_out

TOPIC = b"Topic: a\tPartition: 0\tLeader: 3\tReplicas: 3,4\tIsr: 3,4\n"


def racks_of(*sources):
    """The rack of each broker, None where it is unknown."""
    cluster = registry.read([TOPIC, *sources], format="kafka", spread={})
    tier = cluster.topology
    domains = tier.domain[0].tolist()
    racks = [tier.domain_name(0, d) if d >= 0 else None for d in domains]
    return dict(zip(cluster.nodes.names, racks, strict=True))


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read([TOPIC, *sources], format="kafka", spread={})
    return caught.value.faults


def properties(files):
    """Lines of files that are joined, each a letter for its key, and its value."""
    keys = {"R": "process.roles", "N": "node.id", "I": "broker.id", "K": "broker.rack"}
    roles = {"c": "controller", "b": "broker", "d": "broker, controller"}
    lines = [
        f"{keys[key]}={roles[value] if key == 'R' else value}"
        for key, value in files.replace("|", " ").split()
    ]
    return "\n".join(lines).encode()


def test_racks_that_brokers_registered_at_zookeeper():
    def got(broker, rack):
        said = {"endpoints": [f"PLAINTEXT://k{broker}:9092"], "rack": rack, "port": 9092}
        return f"[zk: k1(CONNECTED) 0] get /brokers/ids/{broker}\n{json.dumps(said)}\n"

    missing = "[zk: k1(CONNECTED) 1] get /brokers/ids/9\nNode does not exist: /brokers/ids/9\n"
    assert racks_of((got(3, "a") + missing + got(4, "b")).encode()) == {"3": "a", "4": "b"}
    (fault,) = faults_of((got(3, "a") + got(3, "b")).encode())
    assert fault.value == "b"


class TestProperties:
    """``|`` is where a file ends, of which the text that is read shows nothing."""

    @pytest.mark.parametrize(
        ("files", "racks"),
        [
            ("I3 Kx | I4 Ky", "xy"),
            ("Kx I3 | Ky I4", "xy"),
            ("I3 Kx | Ky I4", "xy"),
            ("Rc N1 | Kx Rb N3 | Ky Rb N4", "xy"),
            ("Rc N1 | Kx Rb N3 | Ky Rb N4 | Rc N5", "xy"),
            ("Kx Rb N3 | Rc N1 | Ky Rb N4", "xy"),
            ("N1 Rc | Kx N3 Rb | Ky N4 Rb", "xy"),
            ("Kz N1 Rc | Kx N3 Rb | Ky N4 Rb", "xy"),
            ("N1 Rc Kz | N3 Rb Kx | N4 Rb Ky", "xy"),
            ("Rc N1 Kz | Rb N3 Kx | Rb N4 Ky | Rc N5 Kz", "xy"),
            ("Rc N1 | Rc N2 | Rb N3 Kx | N4 Rd Ky", "xy"),
            ("I3 N3 Kx | Kx I4 N4", "xx"),
            # the rack of 3 or that of 1, but both are x
            ("Rc N1 | Kx Rb N3 | Kx Rb N4 | Kx Rc N5", "xx"),
        ],
    )
    def test_a_key_that_is_seen_again_begins_the_next_file(self, files, racks):
        assert racks_of(properties(files)) == dict(zip("34", racks, strict=True))

    @pytest.mark.parametrize(
        ("one", "other", "line", "nodes"),
        [
            (
                "Rc N1 | Kx Rb N3 | Ky Rb N4 | Kz Rc N5", "Rc N1 Kx | Rb N3 Ky | Rb N4 Kz | Rc N5",
                3, ["3", "4"],
            ),
            (
                "N1 Rc | Kx N3 Rb | Ky N4 Rb | Kz N5 Rc", "N1 Rc Kx | N3 Rb Ky | N4 Rb Kz | N5 Rc",
                3, ["3", "4"],
            ),
            ("Kx N3 | Rc Ky N4", "Kx N3 Rc | Ky N4", 3, ["3", "4"]),
            ("I3 Kx | I4", "I3 | Kx I4", 2, ["3", "4"]),
        ],
    )  # fmt: skip
    def test_files_that_may_end_here_or_there_are_a_fault_unless_given_apart(
        self, one, other, line, nodes
    ):
        assert properties(one) == properties(other)
        (fault,) = faults_of(properties(one))
        assert (fault.path, fault.value) == (f"<bytes>:{line}", nodes)
        assert str(line) in fault.message and "one by one" in fault.message
        if "I" not in one:  # in these no broker is without a rack
            read = [racks_of(*map(properties, files.split("|"))) for files in (one, other)]
            assert read[0] != read[1]

    @pytest.mark.parametrize(
        ("files", "faults"),
        [
            ("I3 | I4 Kx | Ky", [(1, 3), (4, "y")]),
            ("Ix Kx | I4 Ky", [(1, "x")]),
            ("Rc", [(1, "controller")]),
        ],
    )
    def test_what_files_lack_is_named(self, files, faults):
        assert [(fault.path, fault.value) for fault in faults_of(properties(files))] == [
            (f"<bytes>:{line}", value) for line, value in faults
        ]


ANSWER = "k:9092 (id: {} rack: {} isFenced: false) -> (\n)\n"
LOADED = [{"Broker": 3, "BrokerState": "ALIVE", "Host": "h", "Rack": "x"},
          {"Broker": 4, "BrokerState": "ALIVE", "Host": "i", "Rack": ""}]  # fmt: skip
UNKNOWN = {
    "API versions": (ANSWER.format(3, "x") + ANSWER.format(4, "null")).encode(),
    "JSON": b'{"3": "x", "4": null}',
    "an empty name": b'{"3": "x", "4": ""}',
    "a table": b"broker,rack\n3,x\n4,\n",
    "load": json.dumps({"brokers": LOADED}).encode(),
    "properties": b"node.id=3\nbroker.rack=x\nnode.id=4\nbroker.rack=\n",
    "endpoints": (
        b"ID  HOST  PORT  RACK  STATE  ENDPOINT_TYPE\n"
        b"3   k     9092  x     unfenced  broker\n4   k     9092  null  unfenced  broker\n"
    ),
    "rpk": (
        b"ID  HOST  PORT   RACK  CORES  MEMBERSHIP  IS-ALIVE  VERSION  UUID\n"
        b"3   k     33145  x     2      active      true      v24.2.7  1-2\n"
        b"4   l     33145  -     2      active      true      v24.2.7  1-3\n"
    ),
    "/v1/brokers": (
        b'[{"node_id": 3, "rack": "x", "membership_status": "active", "is_alive": true},'
        b' {"node_id": 4, "membership_status": "active", "is_alive": true}]'
    ),
}

REDPANDA = {
    "before 24.2.7": (
        b"NODE-ID  NUM-CORES  MEMBERSHIP-STATUS  IS-ALIVE  BROKER-VERSION\n"
        b"3        2          active             true      v24.1.16 - 5a\n"
        b"4        2          draining           true      v24.1.16 - 5a\n"
        b"5        2          draining           false\n"
        b"6        2          active             true      v24.1.16 - 5a\n"
    ),
    "since": (
        b"ID  HOST  PORT   RACK  CORES  MEMBERSHIP  IS-ALIVE  VERSION  UUID\n"
        b"3   k     33145  -     2      active      true      v24.2.7  1-2\n"
        b"4   l     33145  -     2      draining    true      v24.2.7  1-3\n"
        b"5   m     33145  -     2      draining    false     -        1-4\n"
        b"6   n     33145  -     2      active      true      v24.2.7  1-5\n"
    ),
    "/v1/brokers": json.dumps(
        [
            {"node_id": broker, "num_cores": 2, "membership_status": member, "is_alive": alive}
            for broker, member, alive in (
                (3, "active", True),
                (4, "draining", True),
                (5, "draining", False),
                (6, "active", True),
            )
        ]
    ).encode(),
}


@pytest.mark.parametrize("release", REDPANDA)
def test_redpanda_tells_which_brokers_live_and_which_leave(release):
    described = b"Topic: a\tPartition: 0\tLeader: 3\tReplicas: 3,4,5\tIsr: 3,4\n"
    cluster = registry.read(described, REDPANDA[release])
    assert [*cluster.nodes.names] == ["3", "4", "5", "6"]
    assert cluster.nodes.alive.tolist() == [True, True, False, True]
    (moved,) = ek.solve(cluster.replace(replicas=2), goals=ek.Goals(level=None)).moves
    assert (moved.source, moved.target) == ("4", "6")
    assert "decommissions brokers 4, whose" in "".join(left_out(cluster))


def test_rpk_lists_brokers_without_racks():
    described = b"Topic: a\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"
    info = b"BROKERS\n=======\nID    HOST  PORT\n0*    k     9092\n1     l     9092\n"
    cluster = registry.read(described, info)
    assert ([*cluster.nodes.names], cluster.topology.tiers) == (["0", "1"], ())


class TestUnknown:
    @pytest.mark.parametrize("name", UNKNOWN)
    def test_a_rack_that_is_unknown_contradicts_none(self, name):
        for files in permutations([b"3 x\n4 y\n", UNKNOWN[name]]):
            assert racks_of(*files) == {"3": "x", "4": "y"}

    @pytest.mark.parametrize("name", UNKNOWN)
    def test_another_rack_is_a_fault_that_names_both(self, name):
        for files in permutations([b"3 z\n4 y\n", UNKNOWN[name]]):
            (fault,) = faults_of(*files)
            assert fault.value in ("x", "z") and "has broker 3 on" in fault.message
            assert {fault.value, fault.message[-1]} == {"x", "z"}

    def test_three_files_may_complete_each_other(self):
        for files in permutations([b'{"3": null, "4": null}', b"3 x\n", b"broker,rack\n4,y\n"]):
            assert racks_of(*files) == {"3": "x", "4": "y"}


def load(state="ALIVE", disk=2.0**20):
    brokers = [
        {"Broker": broker, "BrokerState": state, "DiskCapacityMB": disk} for broker in (3, 4)
    ]
    return json.dumps({"brokers": brokers}).encode()


def capacity(disk):
    rows = [{"brokerId": "3", "capacity": {"DISK": disk, "CPU": "100"}}]
    return json.dumps({"brokerCapacities": rows}).encode()


def one_file(name, data, folder):
    (folder / name).write_bytes(data)
    return folder / name


class TestAgreement:
    """Cruise Control's load beside a table of brokers, or a file of capacities."""

    @pytest.mark.parametrize(
        "other",
        [
            b"broker,disk\n3,1099511627776\n4,\n",
            b"broker,state,disk\n3,up,1TiB\n4,,1TiB\n",
            b"broker,state\n3,up\n4,up\n",
            capacity("1048576"),
            capacity("1048576.0001"),
            load(),
        ],
    )
    def test_equal_values_agree_in_any_order(self, other):
        read = [registry.read([TOPIC, *files]) for files in permutations([load(), other])]
        for cluster in read:
            assert cluster.nodes.alive.all()
            assert (cluster.nodes.capacity[:, cluster.dimensions.index("disk")] == 2.0**40).all()
            assert cluster.nodes.capacity.tolist() == read[0].nodes.capacity.tolist()

    @pytest.mark.parametrize(
        ("here", "other"),
        [
            (load(), b"broker,state\n3,down\n"),
            (load("DEAD"), b"broker,state\n3,up\n"),
            (load("DEMOTED"), b"broker,state\n3,up\n"),
            (load(), b"broker,disk\n3,9\n"),
            (load(), capacity("9")),
            (b"broker,disk\n3,9\n", capacity("9")),
            (b"broker,rack\n3,x\n", b"broker,rack\n3,y\n"),
        ],
    )
    def test_unlike_values_are_a_fault_that_names_both_in_any_order(self, here, other, tmp_path):
        files = [one_file("here", here, tmp_path), one_file("other", other, tmp_path)]
        for first, second in permutations(files):
            (fault,) = faults_of(first, second)
            assert fault.path.startswith(f"{second}:") and f"{first}:" in fault.message

    def test_each_capacity_names_where_it_was_read(self, tmp_path):
        files = [
            one_file("cpu", b"broker,cpu\n3,100\n", tmp_path),
            one_file("disk", b"broker,disk\n3,8\n", tmp_path),
            one_file("load", load(), tmp_path),
        ]
        (fault,) = faults_of(*files)
        assert f"{files[1]}:" in fault.message

    def test_a_state_that_a_table_leaves_open_is_that_of_the_load(self):
        for files in permutations([load("DEAD"), b"broker,state,rack\n3,,x\n4,,y\n"]):
            assert not registry.read([TOPIC, *files]).nodes.alive.any()


class TestLines:
    @pytest.mark.parametrize(
        "line",
        [
            "10:15:30.123 INFO x",
            "10:15 INFO started",
            "3: [2024-05-01 10:15:30,123] INFO x",
            "3 = a b",
        ],
    )
    def test_a_line_of_a_log_gives_no_rack(self, line):
        (fault, *_) = faults_of(f"3 x\n{line}\n4 y\n".encode())
        assert fault.path == "<bytes>:2"

    def test_a_log_is_no_file_of_racks(self):
        log = b"10:15:30.123 [main] INFO starting\n10:15:31.456 [main] INFO rack x\n"
        with pytest.raises(InvalidInput) as caught:
            registry.read([TOPIC, log])
        assert "Kafka" in str(caught.value) or "kafka" in str(caught.value)

    def test_words_are_a_rack_in_quotes(self):
        assert racks_of(b"3: 'row 5'\n4 = \"row 6\"\n") == {"3": "row 5", "4": "row 6"}
