"""Log records: a line of text for users, and its fields for programs.

Every logger is below ``evenkeel``, and none shows anything unless the program that uses the library
sets logging up. Long operations log their begin, their end and the reason; the fields
of a record are its attribute ``evenkeel``, a dict of plain values with the ``event`` among them.

=======================  ===========================================================================
logger                   events
=======================  ===========================================================================
``evenkeel.solve``       ``solving`` (debug); ``solved``: method, status, stop_reason, moves,
                         leader_changes, work, seconds, timings
``evenkeel.exact``       ``proving`` (debug); ``proven``: status, stop_reason, stages, effort
``evenkeel.parts``       debug ``splitting``: parts, nodes, partitions, seed
``evenkeel.sweep``       ``sweeping``; ``swept``: scenarios, done, failed, fit, stop_reason,
                         seconds; ``failed``, with the error; ``again``: batches
``evenkeel.size``        ``tried`` (debug); ``sized``: status, nodes, price, at_least, seconds
``evenkeel.headroom``    ``measured``: reaches, seconds
``evenkeel.frontier``    ``searching`` (debug); ``found``: points, moves, levels, seconds
``evenkeel.relaxation``  ``proved``: before, moves; ``relaxed``: value, proven
``evenkeel.simulate``    ``playing``; ``played``: scenario, method, stop_reason, moves, seconds
``evenkeel.kernels``     ``waiting`` while another process compiles a kernel, or ``impatient``
``evenkeel.control``     ``calculating`` (debug), ``calculated``, ``cancelled``, ``stale``,
                         ``unchanged``, ``failed``, ``kept``, ``metrics``, ``health``, and what went
                         wrong
=======================  ===========================================================================

Seconds are those of the wall clock. Solves within a sweep, a frontier or a pipeline log
themselves, too.
"""

import logging

ROOT = "evenkeel"


def be_silent() -> None:
    """Show nothing, warnings included, to programs that do not set logging up."""
    logging.getLogger(ROOT).addHandler(logging.NullHandler())


def log_event(
    logger: logging.Logger, event: str, level: int = logging.INFO, **values: object
) -> None:
    """Log what happened, in words and as data.

    >>> log_event(logging.getLogger("evenkeel.solve"), "solved", status="optimal")
    """
    if logger.isEnabledFor(level):
        words = " ".join(f"{name}={value}" for name, value in values.items())
        logger.log(level, "%s %s", event, words, extra={"evenkeel": {"event": event, **values}})
