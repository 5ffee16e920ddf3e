"""`Run`: the rows of a result are asked, as many at once as may be, and put into their places.

The work is done on an event loop: the background loop for `Run.block`, the caller's for `Run.wait`. What is the user's
(the rows, the function that makes prompts, synchronous tools) runs on the caller's thread in both.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mmsp_nb import gauge, loop
from mmsp_nb.agent import Execute
from mmsp_nb.interrupts import blocking, cancelling
from mmsp_nb.mapping.gate import Gate
from mmsp_nb.mapping.journal import Journal, key_of, memory
from mmsp_nb.mapping.options import Options
from mmsp_nb.mapping.plan import Done
from mmsp_nb.mapping.progress import Progress
from mmsp_nb.mapping.rates import Rates
from mmsp_nb.mapping.refusals import meaning
from mmsp_nb.mapping.results import Mapped
from mmsp_nb.money import BudgetExceededError, dollars, spending
from mmsp_nb.protocol.errors import ProviderStreamError, TransportError, UnsupportedOperationError, UpstreamError
from mmsp_nb.protocol.items import UniMessage, UsageMetadata
from mmsp_nb.tools import ToolOutcome, run_calls
from mmsp_nb.tools.calling import PreparedCall
from mmsp_nb.tools.capture import run_captured

__all__ = ["Run", "unfinished"]

BATCH = 64
"""Rows that are made ready at once, as long as that takes no longer than `READY` seconds."""

READY = 0.02

GIVE_UP = 20
"""So many rows in a row may fail for reasons that are not their own; then the others are not asked."""

TYPICAL = 5
"""After so many answers their cost tells what all will cost."""

TICK = 0.1
"""Seconds between two looks at the progress, and for a Ctrl-C."""

CLEAN_UP = 5.0
"""Seconds that an interrupted run has to close its connections."""

_NOT_THE_ROWS = (TransportError, ProviderStreamError, UpstreamError)

_unfinished: Mapped | None = None


def unfinished() -> Mapped | None:
    """What there is of the latest run that did not come to its end; None when it did."""
    return _unfinished


@dataclass(slots=True)
class Job:
    """One row, ready to be asked; or why it cannot be."""

    position: int
    messages: list[UniMessage] | None = None
    key: str = ""
    failure: Exception | None = None


class Run:
    """Asks the rows of ``result`` that have no answer. Use `block` or `wait`, once.

    Attributes:
        total: Rows altogether; None where nobody knows.
        answered, failed, kept: Rows that have an answer, that have none in the end, and those whose answer was there.
        cost: US dollars by list price that this run has taken. ``masked``: keys that were replaced in it.

    Raises ValueError for options that are none, BudgetExceededError where all would cost too much.
    """

    def __init__(self, result: Mapped) -> None:
        self.result = result
        self.plan = result._plan
        self.options = Options.of(result._given, self.plan.executor)
        if self.options.budget is not None and self.plan.cost_of is None:
            raise ValueError(f"budget cannot be kept: the prices of {self.plan.model} are not known")
        self.total = result._rows.length
        self.answered = sum(isinstance(slot, Done) for slot in result._slots.values())
        self.failed = self.kept = self.masked = 0
        self.cost = Decimal(0)
        self._priced = self._running = 0
        self._first_time = not result._slots
        self._todo = self._rows()
        self._jobs: deque[Job] = deque()
        self._exhausted = False
        self._reading = asyncio.Lock()
        self._seen = Counter(key.partition("-")[0] for key in result._keys.values())
        self._asking: dict[str, list[int]] = {}  # with dedupe: the other rows that ask the same
        self._by_key: dict[str, Done] = {}
        self._bad_luck = 0
        self._journal: Journal | None = None
        self.gate: Gate | None = None
        result.stopped = None

    # on the caller's thread

    def block(self) -> Mapped:
        """Run on the background loop and wait. A KeyboardInterrupt ends it; what was answered is remembered."""
        if loop.is_current():
            raise UnsupportedOperationError("map() would wait for itself here: use `await amap(...)`", operation="map")
        mailbox: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()

        async def here(work: Callable[[], Any]) -> Any:
            """``work``, on the thread that waits."""
            done: Future[Any] = Future()
            mailbox.put((work, done))
            return await asyncio.wrap_future(done)

        async def run_sync(call: PreparedCall) -> ToolOutcome:
            outcome: ToolOutcome = await here(lambda: run_captured(call))
            return outcome

        with blocking(), self._kept_safe(), Progress(self, self.options.progress) as progress:
            try:
                job = loop.submit(
                    self._work(
                        lambda: here(self._ready), lambda calls, report: run_calls(calls, report, run_sync=run_sync)
                    )
                )
            except RuntimeError as error:
                raise UnsupportedOperationError(
                    f"no thread to wait for ({error}): use `await amap(...)`", operation="map"
                ) from None
            job.add_done_callback(lambda _: mailbox.put(None))
            looked = time.monotonic()
            try:
                while True:
                    with contextlib.suppress(queue.Empty):
                        if (message := mailbox.get(timeout=TICK)) is None:
                            break
                        _do(*message)
                    if time.monotonic() - looked >= TICK:
                        looked = time.monotonic()
                        progress.update()
            except BaseException:
                job.cancel()
                deadline = time.monotonic() + CLEAN_UP
                while not job.done() and time.monotonic() < deadline:
                    with contextlib.suppress(queue.Empty):
                        mailbox.get(timeout=TICK)
                raise
            job.result()
        return self.result

    async def wait(self) -> Mapped:
        """Run on the running loop. A cancellation, which is how a kernel interrupts, ends it in the same way."""

        async def ready() -> list[Job]:
            with cancelling():
                return self._ready()

        with self._kept_safe(), Progress(self, self.options.progress) as progress:
            task = asyncio.ensure_future(self._work(ready, None))
            try:
                while not task.done():
                    await asyncio.wait([task], timeout=TICK)
                    progress.update()
            except BaseException:
                task.cancel()
                await asyncio.wait([task], timeout=CLEAN_UP)
                raise
            task.result()
        return self.result

    @contextlib.contextmanager
    def _kept_safe(self) -> Iterator[None]:
        """Whatever ends the run, the answers that have come are there for the next one."""
        global _unfinished
        result = self.result
        if self.options.checkpoint is not None:
            self._journal = Journal(self.options.checkpoint)
        try:
            yield
        except (KeyboardInterrupt, asyncio.CancelledError):
            of = f" of {self.total:,}" if self.total is not None else ""
            print(
                f"stopped: {self.answered:,}{of} rows are answered. The same call again asks only the others; "
                "mmsp_nb.mapping.unfinished() has what there is.",
                file=sys.stderr,
            )
            raise
        finally:
            if self._journal is not None:
                self._journal.close()
            whole = self._exhausted and result.ok
            if not whole:
                slots = ((key, result._slots.get(position)) for position, key in result._keys.items())
                memory.keep({key: slot for key, slot in slots if isinstance(slot, Done)})
            _unfinished = None if whole else result

    def _rows(self) -> Iterator[tuple[int, Any]]:
        """The rows to ask: those that were read and have no answer, then those that were not read."""
        rows, slots = self.result._rows, self.result._slots
        for position in range(rows.read):
            if not isinstance(slots.get(position), Done):
                slots.pop(position, None)
                yield position, rows[position]
        yield from rows

    def _ready(self) -> list[Job]:
        """The next rows with their messages; none at the end."""
        jobs: list[Job] = []
        begin = time.monotonic()
        for position, row in self._todo:
            try:
                messages = self.result._prompts.messages(position, row)
                jobs.append(Job(position, messages, key_of(self.plan.fingerprint, messages)))
            except Exception as error:
                jobs.append(Job(position, failure=error))
            if len(jobs) >= BATCH or time.monotonic() - begin > READY:
                break
        return jobs

    # on the loop

    async def _work(self, ready: Callable[[], Awaitable[list[Job]]], execute: Execute | None) -> None:
        options = self.options
        self.gate = Gate(Rates(options.limits), options.concurrency)
        first = await ready()
        self._look_at(first)
        self._take(first)
        self._exhausted = not first
        workers = [asyncio.ensure_future(self._ask_rows(ready, execute)) for _ in range(options.concurrency)]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in done:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        stopped = self.result.stopped
        if stopped is not None and not self.answered:
            raise stopped  # nothing was got, so there is nothing to look at

    def _look_at(self, first: list[Job]) -> None:
        """What the first rows tell before anything is sent."""
        failures = [job.failure for job in first if job.failure is not None]
        if failures and len(failures) == len(first) and self._first_time:
            raise failures[0]
        budget, cost_of = self.options.budget, self.plan.cost_of
        if budget is None or cost_of is None or self.total is None:
            return
        sizes = [sum(map(gauge.estimate, job.messages)) for job in first if job.messages]
        system = gauge.estimate(str(self.plan.config.get("system_prompt") or ""))
        least = cost_of({"prompt_tokens": sum(sizes) // len(sizes) + system, "response_tokens": 0})
        left = self.total - self.answered
        if least is not None and least * left > budget:
            raise BudgetExceededError(
                f"{left:,} rows would cost about {dollars(least * left)} before a word is answered, and the budget is "
                f"{dollars(budget)}; nothing was sent"
            )

    async def _ask_rows(self, ready: Callable[[], Awaitable[list[Job]]], execute: Execute | None) -> None:
        assert self.gate is not None
        options = self.options
        while (job := await self._next(ready)) is not None:
            assert job.messages is not None
            self._running += 1
            try:
                done = await self.plan.answer(
                    job.messages, self.gate, execute, retries=options.retries, timeout=options.timeout
                )
            except Exception as error:
                self._fail(job, error)
            else:
                self._answer(job, done)
            finally:
                self._running -= 1

    async def _next(self, ready: Callable[[], Awaitable[list[Job]]]) -> Job | None:
        """The next row to ask; None at the end."""
        async with self._reading:
            while not self._jobs and not self._exhausted and self.result.stopped is None:
                jobs = await ready()
                self._exhausted = not jobs
                self._take(jobs)
            if self._jobs and self.result.stopped is None:
                self._check_budget()
            return self._jobs.popleft() if self._jobs and self.result.stopped is None else None

    def _take(self, jobs: list[Job]) -> None:
        """Rows that were made ready: those whose answer is there get it, the others wait to be asked."""
        for job in jobs:
            if job.failure is not None:
                self._fail(job, job.failure)
                continue
            job.key = self._name(job)
            if (found := self._known(job.key)) is not None:
                self._put(job.position, found)
                self.kept += 1
            elif self.options.dedupe and job.key in self._asking:
                self._asking[job.key].append(job.position)
            else:
                self._asking[job.key] = []
                self._jobs.append(job)

    def _name(self, job: Job) -> str:
        """The key of a row's answer. Rows that ask the same have each their own, unless they are to be asked once."""
        keys, key = self.result._keys, job.key
        if not self.options.dedupe:
            before = keys.get(job.position, "")
            if before.partition("-")[0] == key:
                return before
            self._seen[key] += 1
            if (times := self._seen[key]) > 1:
                key = f"{key}-{times}"
        keys[job.position] = key
        return key

    def _known(self, key: str) -> Done | None:
        if key in self._by_key:
            return self._by_key[key]
        if not self.options.resume:
            return None
        found: Done | None = memory.take(key)
        if found is None and self._journal is not None and (record := self._journal.get(key)) is not None:
            found = self.plan.restored(record)
        elif found is not None and self._journal is not None and self._journal.get(key) is None:
            self._journal.add(key, found.record())
        return found

    def _answer(self, job: Job, done: Done) -> None:
        self._bad_luck = 0
        self._pay(done.usage)
        self.masked += sum(done.masked.values())
        if self._journal is not None:
            self._journal.add(job.key, done.record())
        if self.options.dedupe:
            self._by_key[job.key] = done
        for position in (job.position, *self._asking.pop(job.key, ())):
            self._put(position, done)

    def _put(self, position: int, done: Done) -> None:
        self.result._slots[position] = done
        self.answered += 1

    def _fail(self, job: Job, error: Exception) -> None:
        attempts, usage = error.__dict__.pop("_mmsp_row", (0, None))
        self._pay(usage)
        _lighten(error)
        for position in (job.position, *self._asking.pop(job.key, ())):
            self.result._slots[position] = self.result._error(position, error, attempts, usage)
            self.failed += 1
        if self.options.on_error == "raise":
            error.add_note(f"in row {self.result._rows.label(job.position)!r:.60} of map()")
            self.result.stopped = error
            raise error
        if job.failure is not None:
            return
        if meaning(error) == "run":
            self._stop(error)
        elif isinstance(error, _NOT_THE_ROWS):
            self._bad_luck += 1
            if self._bad_luck >= GIVE_UP:
                self._stop(error)

    def _stop(self, error: BaseException) -> None:
        """No further row is asked; those that are on their way may come."""
        if self.result.stopped is None:
            self.result.stopped = error

    # money

    def _pay(self, usage: UsageMetadata | None) -> None:
        cost = self.plan.cost_of(usage) if self.plan.cost_of is not None else None
        if cost is not None:
            self.cost += cost
            self._priced += 1
            spending.add(cost)

    def _check_budget(self) -> None:
        """Stop when the rows that are on their way will take the rest of a budget."""
        if self.options.budget is None and spending.budget is None:
            return
        each = self.cost / self._priced if self._priced else Decimal(0)
        expected = self.cost + each * self._running
        budget = self.options.budget
        if budget is not None and (self.cost >= budget or expected + each > budget):
            self._stop(
                BudgetExceededError(
                    f"{dollars(self.cost)} of the budget of {dollars(budget)} are spent, and a row costs "
                    f"about {dollars(each)}: .retry(budget=...) goes on"
                )
            )
        elif spending.budget is not None and spending.spent + each * (self._running + 1) > spending.budget:
            self._stop(
                BudgetExceededError(
                    f"all conversations have cost {dollars(spending.spent)}, and may cost {dollars(spending.budget)}: "
                    "raise mmsp_nb.spending.budget, then .retry() goes on"
                )
            )

    def status(self) -> str:
        """What the progress bar says beside the rows."""
        parts = []
        if self.kept:
            parts.append(f"{self.kept:,} were there")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.masked:
            parts.append(f"{self.masked:,} key{'' if self.masked == 1 else 's'} masked")
        if self.cost:
            spent = dollars(self.cost)
            left = None if self.total is None else self.total - self.answered - self.failed
            if left and self._priced >= TYPICAL:
                spent += f" of about {dollars(self.cost + self.cost / self._priced * left)}"
            parts.append(spent)
        if self.gate is not None and (wait := self.gate.waiting - self.gate.clock()) >= 1:
            parts.append(f"waiting {wait:.0f} s, as the provider wants")
        return ", ".join(parts)


def _lighten(error: BaseException | None) -> None:
    """Without tracebacks: they would keep all that was sent, once for each row."""
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _do(work: Callable[[], Any], done: Future[Any]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        found = work()
    except Exception as error:  # of the user's rows: for the run to end with
        done.set_exception(error)
    else:
        done.set_result(found)
