"""Simulations of the reproduction: requested by name, each run once, in parallel."""

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
    """Sample sizes of the simulations.

    Parameters
    ----------
    checked
        Share of the paper's connections, for settings with checked values.
    drawn
        Share of the paper's connections, for settings that are only plotted.
    replications
        Independent runs of each checked setting. The paper's values vary, because each is from one
        run; the simulated values should vary less.
    sparse
        Whether to plot fewer settings than the paper.
    """

    checked: float = 1.0
    drawn: float = 1.0
    replications: int = 4
    sparse: bool = False

    @property
    def whole(self) -> bool:
        """Whether all settings are simulated at the paper's length."""
        return self.checked >= 1 and self.drawn >= 1 and not self.sparse


FULL = SampleSizes()
QUICK = SampleSizes(checked=0.25, drawn=0.04, replications=1, sparse=True)


@dataclass(frozen=True, slots=True)
class Job:
    """A setting with numbers of connections and of replications."""

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
    """Simulations by setting: :meth:`request` all, :meth:`simulate`, then look up the answers."""

    def request(
        self,
        settings: Iterable[Setting],
        *,
        checked: bool = False,
        connections: int | None = None,
    ) -> None:
        """Request settings. If one is requested twice, it runs once with the larger length.

        Parameters
        ----------
        settings
            Settings to simulate.
        checked
            Whether values of these settings are checked, which requires longer runs.
        connections
            Fixed number of connections, for settings without random variation.
        """
        share = self.sample_sizes.checked if checked else self.sample_sizes.drawn
        replications = self.sample_sizes.replications if checked and connections is None else 1
        for each in settings:
            count = connections or max(1, round(each.connections * share))
            before = self._jobs.get(each)
            if isinstance(before, Job):
                count = max(count, before.connections)
                replications = max(replications, before.replications)
            self._jobs[each] = Job(each, count, replications)

    def __getitem__(self, wanted: Setting | str) -> Answer:
        """Return the simulator's answer to a setting or its name.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        result: Answer = self._result(setting(wanted) if isinstance(wanted, str) else wanted)
        return result
