"""The simulations of a reproduction: asked for by name, run once each, side by side on threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcpcast.engines import RunOptions, answer
from tcpcast.papers.engset.settings import Setting, setting
from tcpcast.papers.reproduction import Unfinished
from tcpcast.papers.simulations import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer

SEED = 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to simulate.

    Parameters
    ----------
    checked
        Share of the paper's connections for settings whose figures are checked.
    drawn
        The same for settings that are only drawn.
    replications
        Independent runs of each checked setting: the paper's own figures are of one run, and
        scatter; ours are not to add to that.
    sparse
        Draw fewer settings than the paper has.
    """

    checked: float = 1.0
    drawn: float = 1.0
    replications: int = 4
    sparse: bool = False

    @property
    def whole(self) -> bool:
        """Whether everything is simulated at the paper's length."""
        return self.checked >= 1 and self.drawn >= 1 and not self.sparse


FULL = Effort()
QUICK = Effort(checked=0.25, drawn=0.04, replications=1, sparse=True)


@dataclass(slots=True)
class Runs:
    """Simulations by setting; :meth:`want` them all, then :meth:`simulate`, then look them up.

    Parameters
    ----------
    effort
        How long each one is.
    threads
        How many run at once (None: one a core).
    progress
        Called with the share of all packets simulated, 0 to 1.
    """

    effort: Effort = FULL
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    _connections: dict[Setting, int] = field(default_factory=dict)
    _replications: dict[Setting, int] = field(default_factory=dict)
    _answers: dict[Setting, Answer] = field(default_factory=dict)
    _done: dict[Setting, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def want(
        self,
        settings: Iterable[Setting],
        *,
        checked: bool = False,
        connections: int | None = None,
    ) -> None:
        """Ask for settings; one that is asked for twice is run once, at the larger length.

        Parameters
        ----------
        settings
            What to simulate.
        checked
            Whether figures of it are checked, which takes longer runs.
        connections
            This many, whatever the effort: for settings where chance plays no part.
        """
        share = self.effort.checked if checked else self.effort.drawn
        for each in settings:
            count = connections or max(1, round(each.connections * share))
            self._connections[each] = max(count, self._connections.get(each, 0))
            if checked and connections is None:
                self._replications[each] = self.effort.replications

    def simulate(self) -> None:
        """Run what was asked for and is not yet there, in the order asked.

        A reader who gives up ends it: those under way are stopped, :attr:`interrupted` is true,
        and what is finished is kept.
        """
        todo = [s for s in self._connections if s not in self._answers]
        self._answers |= side_by_side(todo, self._run, self.threads, self._stopped)

    @property
    def interrupted(self) -> bool:
        """Whether the reader gave up before all was simulated."""
        return self._stopped.is_set()

    def __getitem__(self, wanted: Setting | str) -> Answer:
        """Return the simulator's answer to a setting or its name.

        Raises
        ------
        Unfinished
            The reader gave up before.
        """
        each = setting(wanted) if isinstance(wanted, str) else wanted
        if self.interrupted and each not in self._answers:
            raise Unfinished
        return self._answers[each]

    def __len__(self) -> int:
        """Return the number of simulations asked for."""
        return len(self._connections)

    @property
    def packets(self) -> float:
        """Data packets of all files of all simulations, without retransmissions."""
        return sum(self._packets(s) for s in self._connections)

    def connections(self, wanted: Setting) -> int:
        """Return how many connections of a setting are simulated."""
        return self._connections[wanted]

    def _packets(self, each: Setting) -> float:
        connections = self._connections[each] * self._replications.get(each, 1)
        return float(connections * each.mean_size_pkts)

    def _run(self, each: Setting) -> Answer:
        scenario = each.scenario(
            connections=self._connections[each],
            replications=self._replications.get(each, 1),
            seed=SEED,
        )
        options = RunOptions(threads=1, progress=lambda share: self._report(each, share))
        (given,) = answer(scenario, ["packet"], options)
        if given.interrupted:
            raise KeyboardInterrupt
        self._report(each, 1.0)
        return given

    def _report(self, each: Setting, share: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if self.progress is None:
            return
        with self._lock:
            self._done[each] = share
            done = sum(self._packets(s) * part for s, part in self._done.items())
            self.progress(min(1.0, done / self.packets))
