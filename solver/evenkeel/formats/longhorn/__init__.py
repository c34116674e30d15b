"""Longhorn: its resources as kubectl prints them, and the changes that a person applies with it.

References
----------
longhorn-manager, ``k8s/pkg/apis/longhorn/v1beta2``: volumes, replicas, nodes and settings.
"""
