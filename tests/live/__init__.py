"""Real systems on loopback: built, read, solved, carried out, broken, mended and taken down."""
