"""The pages of the documentation, and what stands in their code blocks.

What is shown is run. On one page, in order and in one folder of its own:

- ``console``: each line that begins with ``$`` is a command; what follows is what it prints, times
  on the clock apart. ``console needs=tshark`` is skipped where there is no tshark, and
  ``console long`` where nobody has asked for what takes long: ``make docs`` and ``check-long`` do.
  What ``console measured`` prints is of one machine at one time: it is run and not compared.
- ``python``: run in one namespace a page. A ``text`` block right after it is what it prints. It may
  be ``measured`` and ``long``, too. With a first line ``# NAME.py`` it is written to that file
  instead, for blocks after it to import.
- ``toml``: a scenario. With a first line ``# NAME.toml`` it is written to that file; without, it
  is a part of one, laid over a packaged scenario.

Other blocks (``sh`` for what sets things up, ``text`` for drawings) are only read.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from started import tcpcast
from tcpcast.scenario import Scenario, load
from tcpcast.scenario.classes import overlay

ROOT = Path(__file__).parents[2]
COLUMNS = "96"
ABOUT_ROOT = 'Running as user "root"'
"""What tshark says to root alone."""

FENCE = re.compile(r"^```(.*)$")
COMMAND = re.compile(r"^\$ ")
PLAIN = re.compile(r"tcpcast(?P<arguments>(?: [^|<>;&$`*?]*?)?)(?P<shell>(?:\|| 2?>)[^;&$]*)?")
"""A command without more of the shell than where its output goes."""
ON_THE_CLOCK = re.compile(r"\bin \d[\d,.]* (?:ns|us|µs|ms|s|min)\b")


def pages() -> list[Path]:
    """Every page, README first."""
    top = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"]
    return [ROOT / f"{name}.md" for name in top] + sorted((ROOT / "docs").rglob("*.md"))


@dataclass(slots=True)
class Block:
    """A fenced block: ``first`` and ``last`` are the lines between the fences, from 0."""

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
        """Return the program without which the block cannot be run."""
        found = re.search(r"needs=(\S+)", self.info)
        return found[1] if found else None

    @property
    def is_long(self) -> bool:
        """Return whether it takes longer than one waits for in passing."""
        return "long" in self.info.split(" ")

    @property
    def is_measured(self) -> bool:
        """Return whether it prints what was measured in real time, another time something else."""
        return "measured" in self.info.split(" ")

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.first}"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
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
            found.append(Block(page, info, first, number, lines[first:number]))
            opened = None
    assert opened is None, f"{page}: a block is not closed"
    return found


@dataclass(slots=True)
class Reader:
    """Somebody who does what a page says, from the top, in a folder of their own."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__docs__"})

    def read(self, block: Block) -> list[str] | None:
        """Do what a block says and return what its lines should be; None for what is only read."""
        match block.language:
            case "console":
                return self._console(block)
            case "python":
                self._python(block)
            case "toml":
                self._toml(block)
        return None

    def output(self, block: Block) -> list[str]:
        """Run a ``python`` block and return what it prints."""
        return self._python(block)

    def _console(self, block: Block) -> list[str]:
        shown: list[str] = []
        for command in commands(block):
            shown += list(("$ " + command).splitlines())
            shown += self._run(command, block)
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
        # A machine that is too busy to measure says so.
        usual = (0, 1, 2, 3) if block.is_measured else (0, 1, 2)
        assert run.returncode in usual, run.stdout
        lines = (line.rstrip() for line in run.stdout.rstrip().splitlines())
        return [line for line in lines if not line.startswith(ABOUT_ROOT)]

    def _started(self, command: str, environment: dict[str, str], streams: Path) -> str:
        """Run the tcpcast of a plain command, and return what the shell is left to do."""
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
        base = tomllib.loads((ROOT / "scenarios" / "web-10mbit.toml").read_text(encoding="utf-8"))
        if "hop" in part.get("network", {}):
            del base["network"]["bottleneck"]  # hops take its place
        Scenario.from_dict(overlay(base, part), folder=self.folder)


def commands(block: Block) -> list[str]:
    """Return the commands of a ``console`` block; one that ends in a backslash goes on."""
    found: list[str] = []
    goes_on = False
    for line in block.lines:
        if goes_on:
            found[-1] += "\n" + line
        elif COMMAND.match(line):
            found.append(line.removeprefix("$ "))
        goes_on = line.endswith("\\") and (goes_on or bool(COMMAND.match(line)))
    return found


def timeless(lines: list[str]) -> list[str]:
    """Leave out what depends on the clock on the wall."""
    return [ON_THE_CLOCK.sub("in a moment", line) for line in lines]


def follows(code: Block, text: Block) -> bool:
    """Whether a ``text`` block stands right after a ``python`` block: it is what that prints."""
    return (
        code.language == "python"
        and text.info == "text"
        and code.page == text.page
        and text.first - code.last <= 3
    )
