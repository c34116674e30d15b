"""Nodes are lost from a cluster in which all is well: what they held goes elsewhere."""
