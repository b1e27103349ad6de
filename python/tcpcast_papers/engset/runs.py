"""Simulations of the reproduction: requested by name, each run once, in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.engset.interpretations import classify_traced_timeouts
from tcpcast_papers.engset.sample import Sample
from tcpcast_papers.engset.settings import Setting, read_setting
from tcpcast_papers.simulations import SEED, Simulations, simulate_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Parameters
    ----------
    checked_share
        Share of the paper's connections in each run of a setting with checked values.
    plotted_share
        Share of the paper's connections, for settings that are only plotted.
    seeds
        Independent runs of each checked setting. Their scatter gives the sampling error of the
        paper's values, which are from one run.
    sparse
        Whether to plot fewer settings than the paper.
    """

    checked_share: float = 0.25
    plotted_share: float = 1.0
    seeds: int = 8
    sparse: bool = False


WHOLE = SampleSizes()
QUICK = SampleSizes(checked_share=1 / 24, plotted_share=0.04, seeds=6, sparse=True)


@dataclass(frozen=True, slots=True)
class Job:
    """A setting with a number of connections and a seed."""

    setting: Setting
    connections: int
    seed: int = SEED

    @property
    def weight(self) -> float:
        """Data packets of all files, without retransmissions."""
        return float(self.connections * self.setting.mean_size_pkts)

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Simulate it."""
        scenario = self.setting.scenario(connections=self.connections, seed=self.seed)
        answer = simulate_scenario(scenario, progress)
        if self.setting.traced_flows > 1:
            # The traces of all runs need too much memory; only their timeouts are used.
            answer.tables |= classify_traced_timeouts(answer)
            answer.tables.pop("sequences")
            answer.tables.pop("windows")
        return answer


class Runs(Simulations[SampleSizes]):
    """Simulations by setting: :meth:`request` all, :meth:`simulate`, then look up the answers."""

    def request(
        self,
        settings: Iterable[Setting],
        *,
        checked: bool = False,
        plotted: bool = True,
        connections: int | None = None,
    ) -> None:
        """Request settings; if one is requested twice, it runs once.

        Parameters
        ----------
        settings
            Settings to simulate.
        checked
            Whether values of these settings are checked, which requires a :meth:`sample`.
        plotted
            Whether the single run of each setting is needed, for plots and plain values.
        connections
            Fixed number of connections, for settings without random variation.
        """
        sizes = self.sample_sizes
        for each in settings:
            if plotted:
                drawn = connections or max(1, round(each.connections * sizes.plotted_share))
                self._jobs[each] = Job(each, drawn)
            for seed in self._seeds if checked else ():
                count = max(1, round(each.connections * sizes.checked_share))
                self._jobs[each, seed] = Job(each, count, seed)

    @property
    def _seeds(self) -> range:
        return range(SEED + 1, SEED + 1 + self.sample_sizes.seeds)

    def __getitem__(self, wanted: Setting | str) -> Answer:
        """Return the simulator's answer to a setting or its name, from one run.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        result: Answer = self._result(read_setting(wanted) if isinstance(wanted, str) else wanted)
        return result

    def sample(self, each: Setting) -> Sample:
        """Return the independent runs of a checked setting."""
        sizes = self.sample_sizes
        keys = [(each, seed) for seed in self._seeds]
        return Sample(
            lambda: self._results_of(keys),
            sizes.checked_share,
            includes_mean_error=not sizes.sparse,
            make_row=self.row,
        )
