"""Pages of the documentation and their code blocks.

The blocks of a page run in order, in one temporary folder:

- ``console``: each line that starts with ``$`` is a command, followed by its output. Times are not
  compared, nor lines in place of a last line ``...``. ``console needs=tshark`` is skipped if
  tshark is missing, and ``console long`` runs only with ``make docs`` and ``make check-long``.
  ``console measured`` depends on the machine; it runs, but its output is not compared.
- ``python``: all blocks of a page run in one namespace. A ``text`` block right after it is its
  output. It may also be ``measured`` and ``long``. If the first line is ``# NAME.py``, the block is
  written to that file instead, for later blocks to import.
- ``toml``: a scenario. If the first line is ``# NAME.toml``, it is written to that file; otherwise
  it is part of a scenario, and is merged into a packaged one.

Other blocks (``sh`` for installation, ``text`` for diagrams) do not run.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from started import tcpcast
from tcpcast.report.text import PIPE_WIDTH
from tcpcast.scenario import Scenario, load
from tcpcast.scenario.classes import override_table

ROOT = Path(__file__).parents[2]
COLUMNS = str(PIPE_WIDTH)
ABOUT_ROOT = 'Running as user "root"'
"""Warning of tshark for root."""

FENCE = re.compile(r"^```(.*)$")
COMMAND = re.compile(r"^\$ ")
REST = "..."
"""The last line of an output that is not shown completely."""
PLAIN = re.compile(r"tcpcast(?P<arguments>(?: [^|<>;&$`*?]*?)?)(?P<shell>(?:\|| 2?>)[^;&$]*)?")
"""A command without shell syntax except for redirections of its output."""
ON_THE_CLOCK = re.compile(r"\bin \d[\d,.]* (?:ns|us|µs|ms|s|min)\b")


def pages() -> list[Path]:
    """Every page, README first."""
    top = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"]
    return [ROOT / f"{name}.md" for name in top] + sorted((ROOT / "docs").rglob("*.md"))


@dataclass(slots=True)
class Block:
    """A fenced block; ``first`` and ``last`` are the lines between the fences, from 0."""

    page: Path
    info: str
    first: int
    last: int
    lines: list[str]

    @property
    def language(self) -> str:
        return self.info.split(" ")[0]

    @property
    def needs(self) -> str | None:
        """Return the program that the block requires."""
        result = re.search(r"needs=(\S+)", self.info)
        return result[1] if result else None

    @property
    def is_long(self) -> bool:
        """Return True if it runs only with ``make docs`` and ``make check-long``."""
        return "long" in self.info.split(" ")

    @property
    def is_measured(self) -> bool:
        """Return True if its output depends on the machine and the time."""
        return "measured" in self.info.split(" ")

    @property
    def location(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.first}"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    result: list[Block] = []
    opened: tuple[str, int] | None = None
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = (fence[1].strip(), number + 1)
        else:
            info, first = opened
            result.append(Block(page, info, first, number, lines[first:number]))
            opened = None
    assert opened is None, f"{page}: a block is not closed"
    return result


@dataclass(slots=True)
class Reader:
    """Executes a page from the top, in a separate folder."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__docs__"})

    def read(self, block: Block) -> list[str] | None:
        """Execute a block and return its expected lines; None if it does not run."""
        match block.language:
            case "console":
                return self._console(block)
            case "python":
                self._python(block)
            case "toml":
                self._toml(block)
        return None

    def output(self, block: Block) -> list[str]:
        """Run a ``python`` block and return its output."""
        return self._python(block)

    def _console(self, block: Block) -> list[str]:
        shown: list[str] = []
        for command, before in commands(block):
            shown += list(("$ " + command).splitlines())
            printed = self._run(command, block)
            if before[-1:] == [REST]:
                printed = [*printed[: len(before) - 1], REST]
            shown += printed
        return shown

    def _run(self, command: str, block: Block) -> list[str]:
        environment = {**os.environ, "COLUMNS": COLUMNS, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        with tempfile.TemporaryDirectory() as streams:
            run = subprocess.run(
                ["sh", "-c", self._started(command, environment, Path(streams))],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        assert "Traceback" not in run.stdout, run.stdout
        assert "panicked" not in run.stdout, run.stdout
        # A machine that is too busy to measure reports this.
        usual = (0, 1, 2, 3) if block.is_measured else (0, 1, 2)
        assert run.returncode in usual, run.stdout
        lines = (line.rstrip() for line in run.stdout.rstrip().splitlines())
        return [line for line in lines if not line.startswith(ABOUT_ROOT)]

    def _started(self, command: str, environment: dict[str, str], streams: Path) -> str:
        """Run the tcpcast of a plain command, and return the remaining shell command."""
        plain = PLAIN.fullmatch(command.replace("\\\n", " "))
        if plain is None:
            return command
        out = streams / "out"
        err = streams / "err" if plain["shell"] else out
        arguments = shlex.split(plain["arguments"])
        code = tcpcast(arguments, folder=self.folder, environment=environment, out=out, err=err)
        if plain["shell"] is None:
            return f"cat {out}; exit {code}"
        return f"{{ cat {out}; cat {err} >&2; }} {plain['shell']}"

    def _python(self, block: Block) -> list[str]:
        named = re.match(r"# (\S+\.py)$", block.lines[0])
        if named:
            (self.folder / named[1]).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
            return []
        code = compile("\n" * block.first + "\n".join(block.lines), str(block.page), "exec")
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(code, self.names)
        return [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]

    def _toml(self, block: Block) -> None:
        text = "\n".join(block.lines) + "\n"
        named = re.match(r"# (\S+\.toml)\b", text)
        if named:
            (self.folder / named[1]).write_text(text, encoding="utf-8")
            load(self.folder / named[1])
            return
        part = tomllib.loads(text)
        whole = "satellite-pass" if "link" in part else "web-10mbit"
        base = tomllib.loads((ROOT / "scenarios" / f"{whole}.toml").read_text(encoding="utf-8"))
        if "class" in part and "link" in part:
            base = {"run": base["run"]}
        if "hop" in part.get("network", {}):
            del base["network"]["bottleneck"]  # hops replace it
        Scenario.from_dict(override_table(base, part), folder=self.folder)


NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\d)")
MIN_DIGITS = 2
"""Significant digits from which a number is looked for in sentences."""


def stale_numbers(before: str, after: str) -> list[str]:
    """Return the lines of sentences with a number that only the outputs before have.

    The outputs of a page are tested, but not the sentences about them.
    """
    left = _numbers(_output_lines(before)) - _numbers(_output_lines(after))
    return [
        f"{number}: {', '.join(sorted(found))} is no longer in an output: {line.strip()}"
        for number, (line, is_output) in enumerate(_lines(after), 1)
        if not is_output and (found := left & _numbers([line]))
    ]


def _numbers(lines: Iterable[str]) -> set[str]:
    found = {number for line in lines for number in NUMBER.findall(line)}
    return {n for n in found if len(re.sub(r"\D", "", n).strip("0")) >= MIN_DIGITS}


def _output_lines(text: str) -> list[str]:
    return [line for line, is_output in _lines(text) if is_output]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a page, and whether each is inside a fenced block."""
    inside = False
    for line in text.splitlines():
        is_fence = FENCE.match(line) is not None
        yield line, inside and not is_fence
        inside ^= is_fence


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return the commands of a ``console`` block, each with the output that the page shows.

    A backslash at the end continues a command.
    """
    result: list[tuple[str, list[str]]] = []
    goes_on = False
    for line in block.lines:
        if goes_on:
            result[-1] = (result[-1][0] + "\n" + line, [])
        elif COMMAND.match(line):
            result.append((line.removeprefix("$ "), []))
        elif result:
            result[-1][1].append(line)
        goes_on = line.endswith("\\") and (goes_on or bool(COMMAND.match(line)))
    return result


def anchor(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).replace(" ", "-")


def timeless(lines: list[str]) -> list[str]:
    """Replace text that depends on elapsed time."""
    return [ON_THE_CLOCK.sub("in a moment", line) for line in lines]


def follows(code: Block, text: Block) -> bool:
    """Return True if a ``text`` block directly follows a ``python`` block, as its output."""
    return (
        code.language == "python"
        and text.info == "text"
        and code.page == text.page
        and text.first - code.last <= 3
    )
