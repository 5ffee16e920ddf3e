"""What can be done to the turns of a conversation: branch, edit, hide, pin, compact, and take it all back.

`Conversation` inherits it. Turns are shared between the branches of one conversation; only `fork` copies them.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mmsp_nb.choosing import stateful
from mmsp_nb.keyless import KeyMask
from mmsp_nb.protocol.copying import copy_item, copy_messages
from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.protocol.history import now_ms
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.protocol.suggestions import did_you_mean, shown
from mmsp_nb.tools import ToolRegistry
from mmsp_nb.turns import Hiding, Turn, Turns

if TYPE_CHECKING:
    from mmsp_nb.answer import Answer
    from mmsp_nb.conversation import Conversation

__all__ = ["At", "Tree", "Watcher"]

At = Turn | str | int | None
Watcher = Callable[["Turn | None", "dict[str, Any] | None"], None]

MAIN = "main"
_FLAGS = ("hidden", "pinned", "stale", "summarised")

SUMMARY = (
    "Summarise our conversation so far for yourself, so that you can go on without it: facts, decisions, numbers, "
    "names, open questions and what I asked you to keep to. Leave out greetings and detours. Write the summary only."
)
SUMMARY_HEAD = "Summary of the conversation so far:"


@dataclass(frozen=True)
class _State:
    """All that an operation can change, as it is at one moment."""

    branch: str
    branches: tuple[tuple[str, tuple[Turn, ...]], ...]
    before: tuple[UniMessage, ...]
    flags: tuple[tuple[str, tuple[bool, ...]], ...]

    @property
    def turns(self) -> tuple[Turn, ...]:
        return dict(self.branches)[self.branch]


@dataclass(frozen=True)
class _Step:
    """One operation: the state before and after it, and the turns it was about."""

    before: _State
    after: _State
    concerned: tuple[Turn, ...]


class Tree:
    """Branches of turns, and operations on them that `undo` takes back."""

    turns = Turns()
    client: Any
    tools: Any
    _before: list[UniMessage]

    def _plant(self) -> None:
        self.branch = MAIN
        self._branches: dict[str, list[Turn]] = {MAIN: self.turns}
        self._done: list[_Step] = []
        self._undone: list[tuple[_State, _Step | None, _State]] = []
        self._watchers: list[Watcher] = []
        self._given: list[Turn] = []  # the turns from which the client's history was made
        self._hidings = Hiding.changes

    # branches

    @property
    def branches(self) -> dict[str, list[Turn]]:
        """The turns of each branch by its name; ``branch`` is the name of the one in use."""
        return {name: list(self.turns if name == self.branch else turns) for name, turns in self._branches.items()}

    def split(self, at: At = None, *, before: bool = False, name: str | None = None) -> str:
        """Begin another branch in this conversation and use it. Returns its name.

        Args:
            at: Its last turn (a `Turn`, its id or index; None for all); with ``before`` the first it leaves out.
            name: Default is the next free number.
        """
        self._idle("branch")
        end = self._position(at) + (0 if before else 1)
        if name and (not isinstance(name, str) or not name.isprintable() or not name.strip()):
            raise UnsupportedOperationError(f"a branch's name is a line of text, not {shown(name)}", operation="split")
        if name and name in self._branches:
            raise UnsupportedOperationError(f"there is a branch {name!r} already", operation="split")
        name = name or next(n for i in range(2, len(self._branches) + 3) if (n := f"branch {i}") not in self._branches)
        with self._changing():
            self._shelve()
            self.turns = self._finished()[:end]
            self.branch = name
            self._branches[name] = self.turns
        return name

    def checkout(self, name: str) -> None:
        """Go on with another branch."""
        self._idle("change the branch")
        self._known(name, "checkout")
        if name != self.branch:
            with self._changing():
                self._shelve()
                self.branch, self.turns = name, self._branches[name]
                self._find_stale()

    def drop(self, name: str) -> None:
        """Forget a branch that is not in use. `undo` brings it back."""
        self._idle("drop a branch")
        self._known(name, "drop")
        if name == self.branch:
            raise UnsupportedOperationError(f"{name!r} is in use: checkout() another branch first", operation="drop")
        with self._changing():
            del self._branches[name]

    def edit(self, at: At, prompt: Any, **options: Any) -> Answer:
        """Ask another question in place of turn ``at``, in a new branch. The old branch stays; see `branches`.

        ``options`` are those of `ask`. When the question is refused before it is sent, the branch is taken back.
        """
        self.split(at, before=True)
        count = len(self.turns)
        try:
            answer: Answer = self.ask(prompt, **options)  # type: ignore[attr-defined]
        except BaseException:
            if len(self.turns) == count:
                self.undo()
            raise
        return answer

    def fork(self, at: At = None, *, client: Any = None, name: str | None = None) -> Conversation:
        """A conversation of its own that begins like this one.

        Args:
            at: The last turn to take over: a `Turn`, its id, or its index; None for all.
            client: For the fork; needed only when this conversation's client has no ``sibling()``.
            name: Its name; default the same.
        """
        turns = self._finished()[: self._position(at) + 1]
        client = stateful(client) if client is not None else self._sibling()
        client.set_history([])
        fork: Any = type(self)(
            client=client,  # type: ignore[call-arg]
            tools=ToolRegistry(*self.tools, lookup=self.tools.lookup),
            config=copy_item(self.config),  # type: ignore[attr-defined]
            policy=self.policy,  # type: ignore[attr-defined]
            max_turns=self.max_turns,  # type: ignore[attr-defined]
            max_calls=self.max_calls,  # type: ignore[attr-defined]
            max_cost=self.max_cost,  # type: ignore[attr-defined]
            name=name or self.name,  # type: ignore[attr-defined]
        )
        for kept in ("_transport", "why", "budget", "policy", "max_calls", "max_cost", "mask_keys"):
            setattr(fork, kept, getattr(self, kept, None))
        fork.turns = [turn.copy() for turn in turns]
        fork._branches = {MAIN: fork.turns}
        fork._before = copy_messages(self._before)
        fork._load_history()
        result: Conversation = fork
        return result

    def __copy__(self) -> Conversation:
        return self.fork()

    def __deepcopy__(self, memo: Any) -> Conversation:
        return self.fork()

    # single turns

    def hide(self, *turns: At) -> list[Turn]:
        """Keep turns for the person, and send them no more. Returns the turns that were hidden by it.

        A turn that goes on where a hidden one stopped is hidden with it.
        """
        self._idle("hide turns")
        chosen = self._with_continuations(self.turns[self._position(at)] for at in turns)
        return self._flag(chosen, hidden=True)

    def show(self, *turns: At) -> list[Turn]:
        """Send hidden turns again, and those they go on from. None given: all. Returns the turns concerned."""
        self._idle("show turns")
        chosen = [self.turns[self._position(at)] for at in turns] or [turn for turn in self.turns if turn.hidden]
        for turn in list(chosen):
            index = self.turns.index(turn)
            while self.turns[index].resumes and index:
                index -= 1
                chosen.append(self.turns[index])
        return self._flag(chosen, hidden=False, summarised=False)

    def pin(self, at: At, pinned: bool = True) -> list[Turn]:
        """Keep a turn through every `compact`. Returns the turns concerned."""
        self._idle("pin a turn")
        return self._flag([self.turns[self._position(at)]], pinned=pinned)

    def remove(self, *turns: At) -> list[Turn]:
        """Take turns out of this branch, with those that go on from them. `undo` brings them back."""
        self._idle("remove turns")
        chosen = self._with_continuations(self.turns[self._position(at)] for at in turns)
        with self._changing(chosen):
            self.turns = self._branches[self.branch] = [turn for turn in self.turns if turn not in chosen]
            self._find_stale()
        return chosen

    def compact(self, summary: str | None = None, *, keep: int = 2, prompt: str = SUMMARY) -> Turn | None:
        """Put a summary in place of all turns but the last ``keep`` and the pinned ones, which are hidden.

        Args:
            summary: The text; None asks the model for it (one request, which counts for the summary's turn).
            keep: So many turns at the end stay as they are.
            prompt: What the model is asked.

        Returns:
            The summary's turn, or None when there was nothing to compact. `undo` takes it back.
        """
        end, old = self._compactable(keep, summary)
        if not old:
            return None
        if summary is not None:
            return self._compacted(end, old, summary)
        turn = self.fork(self.turns[end - 1]).ask(prompt, tools=()).turn
        return self._compacted(end, old, turn.text, turn)

    async def compact_async(self, summary: str | None = None, *, keep: int = 2, prompt: str = SUMMARY) -> Turn | None:
        """The same on the caller's loop; the model's summary is drawn nowhere while it comes."""
        end, old = self._compactable(keep, summary)
        if not old:
            return None
        if summary is not None:
            return self._compacted(end, old, summary)
        fork = self.fork(self.turns[end - 1])
        async with aclosing(fork.stream(prompt, tools=())) as events:
            async for _ in events:
                pass
        self._idle("compact it")
        if any(turn not in self.turns[:end] for turn in old):
            return None  # the turns went while the summary was written
        return self._compacted(end, old, fork.turns[-1].text, fork.turns[-1])

    def _compactable(self, keep: int, summary: str | None) -> tuple[int, list[Turn]]:
        """Before which turn a summary would stand, and what it would take the place of."""
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise ValueError(f"keep is how many turns stay, a whole number from 0 on, not {shown(keep)}")
        if summary is not None and not (isinstance(summary, str) and summary.strip()):
            raise ValueError(f"summary is a text, or None to ask the model for it, not {shown(summary)}")
        self._idle("compact it")
        end = max(len(self.turns) - keep, 0)
        while 0 < end < len(self.turns) and self.turns[end].resumes:
            end -= 1
        old = [turn for turn in self.turns[:end] if not turn.hidden and not turn.pinned]
        return end, [] if all(turn.summary for turn in old) else old

    def _compacted(self, end: int, old: list[Turn], summary: str, turn: Turn | None = None) -> Turn:
        made = Turn(model=self.model, state="done", reason="answer", summary=True, origin=None)  # type: ignore[attr-defined]
        made.duration = 0.0
        if turn is not None:
            made.usage, made.prices, made.duration = turn.usage, turn.prices, turn.duration
            made.first_token, made.started, made.client_type = turn.first_token, turn.started, turn.client_type
        if self.mask_keys:  # type: ignore[attr-defined]
            mask = KeyMask.of(self.client)
            summary, made.masked = mask.text(summary, "prompt"), mask.found
        made.messages = [_said("user", SUMMARY_HEAD + "\n\n" + summary), _said("assistant", "Understood.")]
        made.history = copy_messages(made.messages)
        made.parent = self.turns[end - 1].id
        with self._changing([made]):
            self.turns.insert(end, made)
            for each in old:
                each.hidden = each.summarised = True
        return made

    # taking back

    def reset(self) -> None:
        """Forget all turns of this branch. `undo` brings them back."""
        self._idle("reset it")
        if self.turns or self._before:
            with self._changing(self.turns):
                self.turns = self._branches[self.branch] = []
                self._before = []

    def undo(self) -> list[Turn]:
        """Take back what was done last: a question, `reset`, `hide`, `edit`, `compact` and all others.

        Returns the turns concerned. `redo` does it again.
        """
        self._idle("undo")
        now = self._state()
        if self._can_step_back(now):
            step = self._done.pop()
            self._restore(step.before)
            concerned = list(step.concerned)
            self._undone.append((self._state(), step, now))
        elif self.turns:
            concerned = [self.turns.pop()]
            self._undone.append((self._state(), None, now))
        else:
            raise UnsupportedOperationError("there is nothing to undo", operation="undo")
        self._load_history()
        self._tell(None, None)
        return concerned

    def redo(self) -> list[Turn]:
        """Do again what `undo` took back last, unless something else was done since. Returns the turns concerned."""
        self._idle("redo")
        if not self._can_redo():
            self._undone.clear()
            raise UnsupportedOperationError("there is nothing to redo", operation="redo")
        _, step, state = self._undone.pop()
        self._restore(state)
        if step is not None:
            self._done.append(step)
        self._load_history()
        self._tell(None, None)
        return list(self.turns[-1:] if step is None else step.concerned)

    def _can_undo(self) -> bool:
        return bool(self.turns) or self._can_step_back(self._state())

    def _can_step_back(self, now: _State) -> bool:
        return bool(self._done) and self._done[-1].after == now

    def _can_redo(self) -> bool:
        return bool(self._undone) and self._undone[-1][0] == self._state()

    # who watches

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher(turn, event)`` for every event of an answer, on the thread where the answer runs.

        ``event`` is an agent's event and must not be changed; None when the turn began or ended. Both are None when
        the turns were changed. Returns what ends it.
        """
        self._watchers.append(watcher)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                self._watchers.remove(watcher)

        return stop

    def _tell(self, turn: Turn | None, event: dict[str, Any] | None) -> None:
        for watcher in tuple(self._watchers):
            with contextlib.suppress(Exception):  # a broken viewer must not end an answer
                watcher(turn, event)

    # what others provide

    def _idle(self, what: str) -> None:
        raise NotImplementedError

    def _load_history(self) -> Any:
        raise NotImplementedError

    def _finished(self) -> list[Turn]:
        raise NotImplementedError

    # inside

    def _sibling(self) -> Any:
        """Another client for the same model."""
        if not hasattr(self.client, "sibling"):
            raise UnsupportedOperationError(
                "this client cannot be copied, and a fork needs one of its own: fork(client=...)", operation="fork"
            )
        return self.client.sibling()

    def _sent(self) -> list[Turn]:
        """The turns whose history goes out with the next request."""
        return [turn for turn in self._finished() if not turn.hidden]

    def _basis(self) -> str:
        """What an answer that comes next is based on: changes when a turn before it is hidden, removed or put back."""
        last = next((t for t in reversed(self.turns) if not t.summary and (t.summarised or not t.hidden)), None)
        return "" if last is None else _after(last)

    def _ends_unsent(self) -> bool:
        """Whether the history ends with a message of the user, without looking through all of it."""
        for turn in reversed(self.turns):
            if turn.history and not turn.hidden:
                return turn.history[-1]["role"] == "user"
        return bool(self._before) and self._before[-1]["role"] == "user"

    def _find_stale(self) -> None:
        """Mark the turns that were answered on another history than the one before them now."""
        basis = ""
        for turn in self.turns:
            if turn.summary:
                continue
            turn.stale = turn.basis is not None and turn.basis != basis
            if turn.summarised or not turn.hidden:
                basis = _after(turn)

    def _position(self, at: At) -> int:
        turns = self._finished()
        if at is None:
            return len(turns) - 1
        if isinstance(at, int) and not isinstance(at, bool) and -len(turns) <= at < len(turns):
            return at % len(turns)
        for index, turn in enumerate(turns):
            if at in (turn, turn.id):
                return index
        raise UnsupportedOperationError(
            f"no turn {at!r} in this conversation, which has {len(turns)}", operation="fork"
        )

    def _known(self, name: str, operation: str) -> None:
        if name not in self._branches:
            near = did_you_mean(name, list(self._branches))
            near = near or f"; there are {', '.join(list(self._branches)[:10])}"
            raise UnsupportedOperationError(f"there is no branch {shown(name)}{near}", operation=operation)

    def _with_continuations(self, turns: Iterable[Turn]) -> list[Turn]:
        """The turns, and those that have sent again what one of them left."""
        chosen = list(turns)
        for before, turn in zip(self.turns, self.turns[1:], strict=False):
            if turn.resumes and before in chosen and turn not in chosen:
                chosen.append(turn)
        return chosen

    def _flag(self, turns: list[Turn], **flags: bool) -> list[Turn]:
        changed = [turn for turn in turns if any(getattr(turn, name) != value for name, value in flags.items())]
        if changed:
            with self._changing(changed):
                for turn in changed:
                    for name, value in flags.items():
                        setattr(turn, name, value)
                if "hidden" in flags:
                    self._find_stale()
        return changed

    def _follow(self) -> None:
        """Give the client its history anew when `turns` was changed by hand: popped, cleared, replaced, reordered."""
        # by identity, which is next to nothing beside the request
        if self.turns != self._given or self._hidings != Hiding.changes:
            self._shelve()
            self._find_stale()
            self._load_history()

    def _shelve(self) -> None:
        self._branches[self.branch] = self.turns

    @contextlib.contextmanager
    def _changing(self, concerned: Iterable[Turn] = ()) -> Iterator[None]:
        """Around an operation: remembers how to take it back, and gives the client the history that it leaves."""
        before, about = self._state(), tuple(concerned)
        yield
        self._shelve()
        self._done.append(_Step(before, self._state(), about or before.turns))
        self._undone.clear()
        self._load_history()
        self._tell(None, None)

    def _state(self) -> _State:
        branches = tuple(
            (name, tuple(self.turns if name == self.branch else turns)) for name, turns in self._branches.items()
        )
        flags = {
            turn.id: values
            for _, turns in branches
            for turn in turns
            if any(values := tuple(getattr(turn, name) for name in _FLAGS))
        }
        return _State(self.branch, branches, tuple(self._before), tuple(sorted(flags.items())))

    def _restore(self, state: _State) -> None:
        flags = dict(state.flags)
        self._branches = {name: list(turns) for name, turns in state.branches}
        self.branch, self._before = state.branch, list(state.before)
        self.turns = self._branches[self.branch]
        for turns in self._branches.values():
            for turn in turns:
                for name, value in zip(_FLAGS, flags.get(turn.id, (False,) * len(_FLAGS)), strict=True):
                    setattr(turn, name, value)


def _after(turn: Turn) -> str:
    """What stands for the history that ends with ``turn``: other turns in it, another value."""
    return hashlib.blake2b(f"{turn.basis} {turn.id} {turn.stale}".encode(), digest_size=8).hexdigest()


def _said(role: Any, text: str) -> UniMessage:
    return {"role": role, "content_items": [{"type": "text.done", "text": text}], "created_at": now_ms()}
