"""What a real kernel sends while an answer streams, beside an update at every delta."""

from __future__ import annotations

from rig import Bench, Section, child, table

PLACE = 55


def run(bench: Bench) -> list[Section]:
    head, *rows = child("../tests/notebook/output_in_a_kernel.py", "--json", "--rounds", str(bench.rounds(1)))
    return [
        Section(
            "What a kernel sends",
            "Counted by a front end of a real kernel, while a model on loopback writes. Beside it what "
            "`display(Markdown(text))` sends that is updated at every delta. Worst second: messages and bytes of any "
            "one second, the end included; the limits are 12 and 100 kB. First delta and oldest tail: from the model's "
            "write to the front end. Of more than 80,000 characters the middle is not stored.",
            below=[table(head, rows)],
        )
    ]
