"""Exit codes of every command."""

DONE = 0
LEFT_BROKEN = 1
BAD_INPUT = 2
INTERRUPTED = 130
