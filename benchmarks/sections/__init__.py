"""The benchmarks, a module each: ``run(bench) -> list[Section]`` measures, ``PLACE`` says where its part stands.

`run.py` finds every module here by itself. To add one, write a module beside the others::

    from rig import Bench, Figure, Section

    PLACE = 75                                   # between its neighbours

    def run(bench: Bench) -> list[Section]:
        rounds = bench.rounds(9)                 # fewer when only to see that it runs
        ours, peer = measure(bench.address, rounds)   # the loopback server of `server.py`, started at first use
        figures = [Figure("what", ours, peer, "ms", goal=1.5)]   # the highest ratio; or most=, within=
        return [Section("Title", "What is measured, and what the peer is.", figures)]

Figures that have no peer go into ``Section(..., below=[table(head, rows)])``. What needs a process of its own is a
script beside `run.py`, run by `rig.child`.
"""
