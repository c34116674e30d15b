"""Longhorn: replica auto-balance and replica scheduling, and a plan for all volumes at once.

``cluster_of`` makes a cluster of hosts with their disks and of volumes with their replicas, for
``solve(cluster, "longhorn")``; ``next_action`` returns Longhorn's next action for one volume, and
an ``AutoBalance`` does it step by step.

>>> from evenkeel.systems.longhorn.auto_balance import Disk, Host, Replica, Settings, Volume
>>> from evenkeel.systems.longhorn.auto_balance import cluster_of, next_action
>>> hosts = [Host(name=n, disks=[Disk(name="d", maximum=1000)]) for n in ("a", "b")]
>>> held = [Replica(name=f"r{i}", host="a", disk="d") for i in range(2)]
>>> volume = Volume(name="v", size=10, replicas=held, number_of_replicas=2, attached_to="a")
>>> settings = Settings(replica_auto_balance="least-effort", replica_soft_anti_affinity=True)
>>> action = next_action(cluster_of(hosts, [volume], settings=settings), "v")
>>> action.kind, action.replica, action.disk, action.candidates
('add', 'v-r-new00001', 'b/d', ('b/d',))
>>> action.why
'hosts without a replica could hold one (least-effort, nodes)'
"""

from typing import TYPE_CHECKING

from evenkeel.model.runtime.later import on_first_use

if TYPE_CHECKING:
    from evenkeel.systems.longhorn.auto_balance.intake import (
        Disk,
        Host,
        Replica,
        Volume,
        cluster_of,
    )
    from evenkeel.systems.longhorn.auto_balance.settings import Settings
    from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance, next_action

__all__ = [
    "AutoBalance", "Disk", "Host", "Replica", "Settings", "Volume", "cluster_of", "next_action",
]  # fmt: skip

# the options alone need no kernels
__getattr__, __dir__ = on_first_use(__name__, {
    "evenkeel.systems.longhorn.auto_balance.intake": "Disk Host Replica Volume cluster_of",
    "evenkeel.systems.longhorn.auto_balance.settings": "Settings",
    "evenkeel.systems.longhorn.auto_balance.stepping": "AutoBalance next_action",
})  # fmt: skip
