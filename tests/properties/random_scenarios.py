"""Runs random valid scenarios, each in a process with limited memory and time, and prints failures.

A failure is a traceback, an unknown exit code, a signal, or a run that takes more than three times
its ``run.max_wall`` of processor time. Each is printed as the shortest failing scenario found::

    python tests/properties/random_scenarios.py --runs 20000 --seed 1

With ``--combine``, scenarios combine features of realistic magnitude (classes, hops, return link,
policers, cross traffic, queues, losses, jitter, ECN, stacks, handshakes, arrivals). A failure is
then also a violated property of the answers (``answer_properties.py``).
"""

import argparse
import copy
import itertools
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # modules that all tests share

import started
from generated_scenarios import Generator, Tables, is_valid
from tcpcast.scenario.toml import write_toml

if sys.platform != "win32":
    import resource

from collections.abc import Iterator, Sequence

COMMANDS = (
    *[["--engine", "packet"]] * 6,
    ["--engine", "packet", "--json"],
    ["--engine", "packet", "--all"],
    ["--engine", "mean-field"],
    ["--engine", "fixed-point"],
    [],
    [],
)
"""Sets of options of ``tcpcast run`` for the scenarios."""

EXIT_CODES = (0, 1, 2, 3)

MOST_OVERRUN = 3
"""Maximum processor time of a run, as a multiple of ``run.max_wall``."""

MOST_WAITING_S = 120
"""Maximum duration of a run in seconds, including waits for other processes."""

MOST_ASLEEP_S = 3
"""Maximum time in seconds that a run may sleep, neither running nor waiting for a processor."""

TOO_LONG = {-getattr(signal, name, 0) for name in ("SIGPROF", "SIGXCPU")}
"""Exit codes of a run that took too much processor time."""

TRIES_TO_SHORTEN = 60

VIOLATED = 99
"""Exit code of a run whose answers violate a property."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run: ``run.max_wall`` in seconds, and the address space in bytes.

    With ``combines``, scenarios combine features of realistic magnitude, and the properties of
    their answers are checked.
    """

    max_wall_s: float = 1.0
    address_space: int = 3 << 30
    combines: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A scenario whose run failed, with its number, the command's options and the reason."""

    number: int
    tables: Tables
    options: list[str]
    reason: str

    def __str__(self) -> str:
        """Return a comment with the command and the reason, and the scenario as TOML."""
        reason = "\n".join(f"# {line}" for line in self.reason.splitlines()[-12:])
        command = " ".join(["tcpcast run FILE", *self.options])
        return f"# scenario {self.number}: {command}\n{reason}\n{write_toml(self.tables)}"


@dataclass(slots=True)
class Tally:
    """Counts of the runs by exit code, and the failures."""

    runs: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


def run_random(
    numbers: Iterator[int] | Sequence[int],
    *,
    seed: int,
    folder: Path,
    limits: Limits,
    shorten: bool = False,
) -> Iterator[tuple[int, int | None, Failure | None]]:
    """Run the scenarios with these numbers; the seed and the number determine each scenario.

    Yields
    ------
    tuple
        The number of the scenario, its exit code (None if it failed), and the failure.
    """
    for number in numbers:
        random = Random(f"{seed} {number}")
        generator = Generator(random)
        options = random.choice(COMMANDS)
        tables: Tables = {}
        try:
            draw = generator.combination if limits.combines else generator.scenario
            tables = draw(f"{limits.max_wall_s:g}s")
            code, reason = run_once(tables, options, folder=folder, limits=limits)
        except Exception as error:
            code, reason = None, f"reading it raised {error!r} {error.__notes__}"
        if reason is None:
            yield number, code, None
            continue
        if shorten and tables:
            tables, reason = shortest(tables, options, reason, folder=folder, limits=limits)
        yield number, None, Failure(number, tables, options, reason)


def run_once(
    tables: Tables, options: list[str], *, folder: Path, limits: Limits
) -> tuple[int | None, str | None]:
    """Run a scenario in a new process; return its exit code and the reason of a failure."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        directory = Path(name)
        (directory / "scenario.toml").write_text(write_toml(tables), encoding="utf-8")
        out, err = directory / ".out", directory / ".err"
        arguments = ["run", "scenario.toml", "--threads", "1", *options]
        process = started.server().Process(
            target=_limited, args=(arguments, directory, out, err, limits)
        )
        begun = time.perf_counter()
        process.start()
        asleep = _wait(process)
        lasted = time.perf_counter() - begun
        if process.exitcode is None:
            process.kill()
            process.join()
            return None, f"{'slept' if asleep else 'did not end'} after {lasted:.3g} s"
        errors = err.read_text(encoding="utf-8") if err.exists() else ""
        if process.exitcode in TOO_LONG:
            return None, f"took more than {MOST_OVERRUN} times run.max_wall of processor time"
        if not errors and not out.exists():
            return None, f"exit code {process.exitcode} before the command began"
        if process.exitcode not in EXIT_CODES or "Traceback" in errors or "panicked" in errors:
            return None, f"exit code {process.exitcode} after {lasted:.3g} s\n{errors}"
        return process.exitcode, None


def _wait(process: Any) -> bool:
    """Wait until a process ends, sleeps, or lasts too long; return True if it sleeps."""
    before = math.nan
    for _ in range(MOST_WAITING_S // MOST_ASLEEP_S):
        process.join(MOST_ASLEEP_S)
        if process.exitcode is not None:
            return False
        active = _active_s(process.pid)
        if abs(active - before) < MOST_ASLEEP_S / 10:
            return True
        before = active
    return False


def _active_s(pid: int) -> float:
    """Return the time that the threads of a process have run or waited for a processor."""
    try:
        states = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:
        return math.nan  # the process has ended
    times = [int(time) for state in states for time in state.split()[:2]]
    return sum(times) / 1e9 if times else math.nan


def _limited(arguments: list[str], folder: Path, out: Path, err: Path, limits: Limits) -> None:
    """Run a command in this process with limited memory and without core dumps."""
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_AS, (limits.address_space, limits.address_space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # The check of properties also converts all tables to JSON and reads them.
        runs = 2 if limits.combines else 1
        max_cpu_s = MOST_OVERRUN * limits.max_wall_s * runs
        signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
        resource.setrlimit(
            resource.RLIMIT_CPU, (math.ceil(max_cpu_s) + 1, math.ceil(max_cpu_s) + 2)
        )
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1"}
    if limits.combines:
        _check_properties(folder, out, err)
    else:
        started.command(arguments, folder, environment, out, err)


def _check_properties(folder: Path, out: Path, err: Path) -> None:
    """Run the scenario in this process, and write its violated properties as errors."""
    from answer_properties import find_violations  # noqa: PLC0415 - only in the forked process
    from tcpcast.scenario import load  # noqa: PLC0415

    os.chdir(folder)
    out.write_text("")
    try:
        violations = find_violations(load("scenario.toml"))
    except Exception:
        violations = [traceback.format_exc()]
    err.write_text("\n".join(violations), encoding="utf-8")
    sys.exit(VIOLATED if violations else 0)


def shortest(
    tables: Tables, options: list[str], reason: str, *, folder: Path, limits: Limits
) -> tuple[Tables, str]:
    """Remove keys while the scenario still fails, with few attempts."""
    tries = itertools.count()
    again = True
    while again:
        again = False
        for path in sorted(_key_paths(tables), key=len):
            changed = _without(tables, path)
            if changed is None or not is_valid(changed):
                continue
            if next(tries) >= TRIES_TO_SHORTEN:
                return tables, reason
            _, still = run_once(changed, options, folder=folder, limits=limits)
            if still is not None:
                tables, reason, again = changed, still, True
                break
    return tables, reason


def _key_paths(value: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in entries:
        if key not in {"run", "max_wall"}:
            yield (*above, key)
        if isinstance(below, dict | list):
            yield from _key_paths(below, *above, key)


def _without(tables: Tables, path: tuple[str | int, ...]) -> Tables | None:
    changed = copy.deepcopy(tables)
    *above, key = path
    table: Any = changed
    for name in above:
        table = table[name]
    del table[key]
    return changed


def main() -> int:
    """Run the number of scenarios from the command line; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-wall", type=float, default=Limits().max_wall_s, help="seconds")
    parser.add_argument(
        "--combine", action="store_true", help="combine features, and check properties of answers"
    )
    parser.add_argument("--as-drawn", action="store_true", help="do not shorten failing scenarios")
    parser.add_argument("--memory", type=float, default=3.0, help="address space of a run, GiB")
    arguments = parser.parse_args()
    memory = int(arguments.memory * 2**30)
    limits = Limits(arguments.max_wall, memory, combines=arguments.combine)
    numbers = range(arguments.first, arguments.first + arguments.runs)
    tally, begun = Tally(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = run_random(
            numbers,
            seed=arguments.seed,
            folder=Path(folder),
            limits=limits,
            shorten=not arguments.as_drawn,
        )
        for _, code, failure in result:
            tally.runs += 1
            if code is not None:
                tally.codes[code] = tally.codes.get(code, 0) + 1
            if failure is not None:
                tally.failures.append(failure)
                print(failure, flush=True)
            if tally.runs % 100 == 0:
                _report(tally, begun)
    _report(tally, begun)
    return 1 if tally.failures else 0


def _report(tally: Tally, begun: float) -> None:
    rate = tally.runs / (time.perf_counter() - begun)
    codes = ", ".join(f"{count:,} ended with {code}" for code, count in sorted(tally.codes.items()))
    print(
        f"{tally.runs:,} runs at {rate:.2f}/s: {codes}, {len(tally.failures):,} failed",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
