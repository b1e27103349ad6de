"""The simulations of a reproduction: asked for by name, run once each, side by side on threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.engset.settings import Setting, setting
from tcpcast_papers.simulations import SEED, Simulations, simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer


@dataclass(frozen=True, slots=True)
class SampleSizes:
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


FULL = SampleSizes()
QUICK = SampleSizes(checked=0.25, drawn=0.04, replications=1, sparse=True)


@dataclass(frozen=True, slots=True)
class Job:
    """A setting, so many connections of it, so many times."""

    setting: Setting
    connections: int
    replications: int = 1

    @property
    def weight(self) -> float:
        """Data packets of all files, without retransmissions."""
        return float(self.connections * self.replications * self.setting.mean_size_pkts)

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Simulate it."""
        scenario = self.setting.scenario(
            connections=self.connections, replications=self.replications, seed=SEED
        )
        return simulated(scenario, progress)


class Runs(Simulations[SampleSizes]):
    """Simulations by setting; :meth:`want` them all, then :meth:`simulate`, then look them up."""

    def request(
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
        share = self.sample_sizes.checked if checked else self.sample_sizes.drawn
        replications = self.sample_sizes.replications if checked and connections is None else 1
        for each in settings:
            count = connections or max(1, round(each.connections * share))
            before = self._asked.get(each)
            if isinstance(before, Job):
                count = max(count, before.connections)
                replications = max(replications, before.replications)
            self._asked[each] = Job(each, count, replications)

    def __getitem__(self, wanted: Setting | str) -> Answer:
        """Return the simulator's answer to a setting or its name.

        Raises
        ------
        Unfinished
            The reader gave up before.
        """
        result: Answer = self._result(setting(wanted) if isinstance(wanted, str) else wanted)
        return result
