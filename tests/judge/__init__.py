"""The judge: an adversary's random clusters, and a verdict that shares nothing with the library.

``case`` and ``draft`` hold and draw inputs, ``clusters`` the families of them. ``world`` reads a
user's input anew, ``broken`` counts what a placement breaks, ``verdict`` says what became worse and
which claims are false, ``mending`` what one step more would have mended. ``cpsat`` knows
every placement of a small cluster, ``beside`` compares a result with the best of them, ``figures``
says how often it was as good. ``studies`` judges sweeps and pipelines. ``trial`` puts one case
before all of them, and ``python -m tests.judge`` many.
"""
