"""`Mapped`: the answers to many rows, in their order; `MapError`: a row that has none."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, overload

from mmsp_nb.mapping.plan import Done, Plan
from mmsp_nb.mapping.prompts import Prompts
from mmsp_nb.mapping.rows import Rows
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.items import UsageMetadata
from mmsp_nb.protocol.suggestions import shown

if TYPE_CHECKING:
    from mmsp_nb.answer import Answer

__all__ = ["MapError", "Mapped", "NotAskedError"]


class NotAskedError(MMSPError):
    """A row that was not asked because the run ended before it; ``reason`` is the exception that ended it, if any."""

    fields = {"reason": None}


@dataclass(frozen=True, repr=False)
class MapError:
    """Stands in the place of a value for a row that has none.

    Attributes:
        error: The exception.
        row: The row.
        position: Where it stands, from 0. ``label`` is what a table's index or a dict calls it.
        attempts: How many requests were made for it; 0 when none was.
        usage: Tokens that they took, as far as they were answered.
    """

    error: BaseException
    row: Any
    position: int
    label: Any
    attempts: int = 0
    usage: UsageMetadata | None = field(default=None, compare=False)

    def __str__(self) -> str:
        from mmsp_nb.tools.views import error_text

        return error_text(self.error)

    def __repr__(self) -> str:
        times = f", {self.attempts} attempts" if self.attempts > 1 else ""
        return f"<MapError row {self.label!r:.60}{times}: {str(self)[:200]}>"


class Mapped(Sequence[Any]):
    """What `map` returns: a sequence with the value of each row, in the order of the rows.

    A value is the text of the answer, or the validated object when a type was given; a row that could not be answered
    has a `MapError` there.

    Attributes:
        stopped: What ended the run before the last row: an exception, or None.
        workers: With an executor, how many requests each of its workers has answered, by ``host:process``.
    """

    def __init__(self, plan: Plan, rows: Rows, prompts: Prompts, given: Mapping[str, Any]) -> None:
        self._plan = plan
        self._rows = rows
        self._prompts = prompts
        self._given = dict(given)
        self._slots: dict[int, Done | MapError] = {}
        self._keys: dict[int, str] = {}  # what each row asks, by its hash
        self.stopped: BaseException | None = None

    # a sequence

    def __len__(self) -> int:
        return self._rows.read if self._rows.length is None else self._rows.length

    @overload
    def __getitem__(self, position: int) -> Any: ...
    @overload
    def __getitem__(self, position: slice) -> list[Any]: ...
    def __getitem__(self, position: int | slice) -> Any:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        if not hasattr(position, "__index__"):
            raise TypeError(f"answers are found by their position, not by {shown(position)}{self._by(position)}")
        position = operator.index(position)
        if not -len(self) <= position < len(self):
            raise IndexError(f"there are {len(self)} rows")
        slot = self._slot(position % len(self))
        return slot.value if isinstance(slot, Done) else slot

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def _by(self, label: Any) -> str:
        """The position of the row that a table's index or a dict calls ``label``, as a hint."""
        found = next((at for at in range(len(self)) if isinstance(label, str) and self._rows.label(at) == label), None)
        return "" if found is None else f"; that row is at {found}"

    def __copy__(self) -> Mapped:
        """A result of its own with the same answers: a retry of one leaves the other as it is."""
        made = Mapped(self._plan, self._rows, self._prompts, self._given)
        made._slots, made._keys, made.stopped = dict(self._slots), dict(self._keys), self.stopped
        return made

    def __deepcopy__(self, memo: Any) -> Mapped:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the result of map() holds a client with its key, so it cannot be pickled: pickle list(answers) or "
            "answers.to_frame(), or give map() a checkpoint"
        )

    # looking

    @property
    def ok(self) -> bool:
        """Whether every row has a value."""
        return not self.errors

    @property
    def errors(self) -> list[MapError]:
        """The rows without a value, in order."""
        slots = (self._slot(position) for position in range(len(self)))
        return [slot for slot in slots if isinstance(slot, MapError)]

    @property
    def usage(self) -> UsageMetadata | None:
        """Tokens of all rows together; None when none were reported."""
        total: UsageMetadata | None = None
        for slot in self._slots.values():
            total = total if slot.usage is None else tokens.add(total, slot.usage)
        return total

    @property
    def cost(self) -> Decimal | None:
        """List price of all rows in US dollars; None when it is not known."""
        return None if self._plan.cost_of is None else self._plan.cost_of(self.usage)

    @property
    def masked(self) -> dict[str, int]:
        """How many keys were replaced by ``***`` before the model read them, in all rows, by place.

        The places are ``prompt``, ``system``, ``tools`` (their descriptions) and ``results``; see `Turn.masked`.
        """
        total = Counter[str]()
        for slot in self._slots.values():
            total.update(slot.masked if isinstance(slot, Done) else {})
        return dict(total)

    @property
    def model(self) -> str:
        """What answered."""
        return self._plan.model

    @property
    def workers(self) -> Counter[str]:
        return self._plan.workers

    @property
    def answers(self) -> list[Answer | MapError]:
        """Each row's `Answer`, with its messages, calls, usage and cost; made anew each time."""
        slots = ((position, self._slot(position)) for position in range(len(self)))
        return [slot if isinstance(slot, MapError) else self._answer(position, slot) for position, slot in slots]

    # going on

    def retry(self, **changes: Any) -> Mapped:
        """Ask the rows that have no value once more, and put what comes in their places. Blocks.

        ``changes``: options of `map` that are to be others now, for instance ``limit``, ``budget`` or ``model``.
        Returns this result itself. Rows of a generator that was not read to its end follow.
        """
        from mmsp_nb.mapping.running import Run

        return Run(self._changed(changes)).block()

    async def aretry(self, **changes: Any) -> Mapped:
        """`retry` for async code."""
        from mmsp_nb.mapping.running import Run

        return await Run(self._changed(changes)).wait()

    def _changed(self, changes: Mapping[str, Any]) -> Mapped:
        from mmsp_nb.mapping import OPTIONS, checked_names

        if changes.keys() & {"rows", "prompt", "images", "names"}:
            raise TypeError("retry() asks the same rows with the same prompt: for others use map()")
        checked_names(changes, "retry")
        self._given |= changes
        if changes.keys() - OPTIONS:
            plan = Plan(**{name: value for name, value in self._given.items() if name not in OPTIONS})
            plan.workers.update(self.workers)
            self._plan = plan
            self._keys = {at: key for at, key in self._keys.items() if isinstance(self._slots.get(at), Done)}
        return self

    # handing on

    def to_frame(self, name: str = "answer") -> Any:
        """The rows with their answers beside them, as a table: a polars one if the rows were, else one of pandas.

        The index of the rows is kept. A text, number or list becomes the column ``name``; an object with fields becomes
        a column for each of them, with ``name`` and an underscore before it where the rows have such a column. If rows
        have failed, a column ``error`` says why.
        """
        from mmsp_nb.mapping.frames import frame

        return frame(self._rows, list(self), name)

    def __repr__(self) -> str:
        from mmsp_nb.mapping.frames import text

        return text(self)

    def _repr_html_(self) -> str:
        from mmsp_nb.mapping.frames import html

        return html(self)

    # for the run and its friends

    def _slot(self, position: int) -> Done | MapError:
        slot = self._slots.get(position)
        if slot is not None:
            return slot
        why = "the run was stopped before it" if self.stopped is None else f"the run ended before it: {self.stopped}"
        return self._error(position, NotAskedError(f"not asked: {why}", reason=self.stopped))

    def _error(
        self, position: int, error: BaseException, attempts: int = 0, usage: UsageMetadata | None = None
    ) -> MapError:
        row = self._rows[position]
        return MapError(error, row, position, self._rows.label(position), attempts, usage)

    def _answer(self, position: int, done: Done) -> Answer:
        from mmsp_nb.answer import Answer
        from mmsp_nb.turns import Turn

        plan, typed = self._plan, None
        if plan.typed is not None and done.data is not None:
            typed = plan.typed.again()
            typed.restore(done.data)
        asked = plan.read(self._prompts.messages(position, self._rows[position]))
        messages = [*asked, *done.said]
        return Answer(
            Turn(
                plan.model,
                messages,
                client_type=getattr(plan.client, "client_type", None),
                origin=getattr(plan.client, "origin", None),
                config=dict(plan.config),
                tools=plan.tools.names(),
                usage=done.usage,
                finish_reason=done.finish_reason,
                state="done",
                reason="answer",
                outcomes=list(done.outcomes),
                typed=typed,
                masked=dict(done.masked),
                duration=done.duration,
                history=list(messages),
                prices=plan.prices,
            )
        )
