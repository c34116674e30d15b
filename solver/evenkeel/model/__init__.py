"""The model: arrays and names, validated once, read-only afterwards."""
