"""One module per golden schema; every module listed here is offered every file.

A schema module has three names, those of `tests.conformance.protocol.Schema`::

    NAME = "helix crush"

    def recognises(path, document): ...
    def replay(path, document): ...

It imports nothing heavy at module level: what computes the answers is imported inside
``replay``, so that replaying one system's files loads that system only.
"""
