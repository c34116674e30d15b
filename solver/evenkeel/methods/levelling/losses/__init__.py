"""A cluster in which all is well, held ready for the loss of nodes."""
