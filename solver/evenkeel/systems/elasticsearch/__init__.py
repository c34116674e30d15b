"""Elasticsearch and OpenSearch: shards, allocation and settings."""
