"""The data model of a cluster: arrays and names, validated once, read-only afterwards."""
