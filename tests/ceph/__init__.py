"""Tests: ceph."""
