"""The tests of Evenkeel."""
