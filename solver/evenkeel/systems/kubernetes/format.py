"""Kubernetes: nodes and pods as kubectl prints them, in; evictions and patches, out.

References
----------
Kubernetes API: ``Node``, ``Pod`` (topology spread constraints, affinity, tolerations),
``PodDisruptionBudget``, ``policy/v1`` ``Eviction``, ``PersistentVolume`` (node affinity).
"""

from evenkeel.systems.kubernetes.cluster import left_out, read
from evenkeel.systems.kubernetes.objects import hint, recognises
from evenkeel.systems.kubernetes.output import encode
from evenkeel.systems.registry import Format

FORMAT = Format(
    name="kubernetes",
    summary="Kubernetes: nodes, pods, budgets and volumes as kubectl get -o json prints them",
    suffixes=(".json", ".sh"),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=left_out,
    hint=hint,
    no_carrier="has no command that moves a pod: its scheduler chooses the node of every new pod, "
    "so that no guard could hold it to a plan; write the placement instead, which gives evictions "
    "and patches to review (-o plan.sh of solve), or cordon nodes and evict by hand",
)
