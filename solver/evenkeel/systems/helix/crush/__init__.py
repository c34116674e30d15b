"""Apache Helix's placement strategies, placing exactly as the originals do."""
