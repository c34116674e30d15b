"""What comes into Longhorn's auto-balance: settings, options, rows, and names of replicas."""

import pytest

from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.systems.longhorn.auto_balance.compile import ReplicaNames
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Settings


def test_settings_by_the_names_of_the_api():
    given = {
        "replica-auto-balance": "best-effort",
        "replica_soft_anti_affinity": "true",
        "storage-minimal-available-percentage": "10",
        "disable-scheduling-on-cordoned-node": False,
        "backup-target": "elsewhere",
    }
    faults = FaultList()
    assert Settings.read(faults, "settings", given) == Settings(
        replica_auto_balance="best-effort",
        replica_soft_anti_affinity=True,
        storage_minimal_available_percentage=10,
        disable_scheduling_on_cordoned_node=False,
    )
    assert not faults
    wrong = {"replica-auto-balance": "most-effort", "storage-minimal-available-percentage": "-1"}
    assert Settings.read(faults, "settings", wrong) == Settings()
    assert [fault.path for fault in faults.faults] == [f"settings['{name}']" for name in wrong]


@pytest.mark.parametrize(
    "options",
    [
        {"replica_auto_balance": "ignored"},
        {"replica_soft_anti_affinity": "true"},
        {"storage_over_provisioning_percentage": -1},
        {"storage_minimal_available_percentage": 101},
        {"order": "zones"},
        {"scope": "volumes"},
        {"evenness": "1"},
        {"most_copied": -1.0},
    ],
)
def test_options_that_are_none(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        Longhorn(**options)


def test_amounts_are_whole_numbers_and_zones_texts():
    disks = [
        Disk(name="d", maximum=1.5),
        Disk(name="e", maximum="100"),
        Disk(name="f", maximum=1e6),
    ]
    one = Volume(name="v", size=float("nan"), number_of_replicas="3", actual_size=True)
    with pytest.raises(InvalidInput) as caught:
        cluster_of([Host(name="a", zone=None, disks=disks)], [one])
    assert [fault.path for fault in caught.value.faults] == [
        "hosts[0].zone",
        "hosts[0].disks[0].maximum",
        "hosts[0].disks[1].maximum",
        "volumes[0].size",
        "volumes[0].actual_size",
        "volumes[0].number_of_replicas",
    ]


def test_every_fault_of_a_system_is_named():
    bad = Disk(name="d", maximum=-1, type="tape")
    hosts = [Host(name="a", disks=[bad, bad]), Host(name="a", disks=[])]
    both = Replica(name="r", host="a", disk="z", failed=True)
    wrong = Volume(
        name="v", size=2**60, replicas=[both, both], number_of_replicas=-1,
        replica_auto_balance="most", attached_to="q", robustness="fine",
    )  # fmt: skip
    with pytest.raises(InvalidInput) as raised:
        cluster_of(hosts, [wrong])
    assert {fault.path for fault in raised.value.faults} == {
        "hosts[1]", "hosts[0].disks[1]", "hosts[0].disks[0].maximum", "hosts[0].disks[0].type",
        "hosts[0].disks[1].maximum", "hosts[0].disks[1].type", "volumes[0].size",
        "volumes[0].number_of_replicas", "volumes[0].replica_auto_balance",
        "volumes[0].attached_to", "volumes[0].robustness", "volumes[0].replicas[0].disk",
        "volumes[0].replicas[0].failed", "volumes[0].replicas[1].disk",
        "volumes[0].replicas[1].failed", "volumes[0].replicas[1].name",
    }  # fmt: skip


def test_names_go_on_where_an_earlier_run_stopped_and_sort_as_they_are_written():
    names = ["b-r-new00007", "a-r-x", "", "c-r-new00001"]
    known = ReplicaNames(names, ["a", "b", "c"])
    assert known.name(1, int(known.next_rank[1])) == "b-r-new00008"
    assert known.name(1, int(known.next_rank[1]) + 1) == "b-r-new00009"
    everyone = [known.name(v, int(known.next_rank[v])) for v in range(3)] + names
    ranks = [*known.next_rank.tolist(), *known.rank.tolist()]
    assert sorted(everyone) == [name for _, name in sorted(zip(ranks, everyone, strict=True))]
    assert known.slot(known.rank).tolist() == [0, 1, 2, 3]
    assert known.slot(known.next_rank).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("setting", [False, True])
@pytest.mark.parametrize(
    ("own", "soft"), [("ignored", None), ("enabled", True), ("disabled", False)]
)
def test_the_own_word_of_a_volume_precedes_the_setting_on_hosts(own, soft, setting):
    hosts = [Host(name=f"n{i}", disks=[Disk(name="a", maximum=10**12)]) for i in range(2)]
    held = [Replica(name="r", host="n0", disk="a")]
    volume = Volume(name="v", size=10**10, replica_soft_anti_affinity=own, replicas=held)
    found = cluster_of(hosts, [volume], settings=Settings(replica_soft_anti_affinity=setting))
    yields = setting if soft is None else soft
    assert found.rules[0].spread["host"] == ((1, "soft") if yields else 1)
