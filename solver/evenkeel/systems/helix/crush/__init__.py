"""Apache Helix's placement strategies, with results identical to the originals."""
