"""A request passes through the packages of ARCHITECTURE.md in order, once per engine."""

import sys
from pathlib import Path
from types import FrameType

import tcpcast
from tcpcast.cli import main

ROOT = str(Path(tcpcast.__file__).parent)

STEPS = (
    "scenario/loading.py:load",
    "engines/__init__.py:answer",
    "engines/formula/engset.py:engset",
    "engines/packet/__init__.py:packet",
    "comparison/compare.py:compare_all",
    "report/run.py:run_parts",
    "report/full_report.py:run_document",
    "report/html.py:html_page",
)
"""The functions of the steps of `tcpcast run` with two engines, in their order."""

ENGINES = ("engines/formula/engset.py", "engines/packet/")
"""Files of these two engines; reports call no function of them."""


def record_calls(arguments: list[str]) -> list[str]:
    """Run a command, and return each call of a function as ``file:function``, in order."""
    calls = []

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            calls.append(f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_name}")

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        main(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(previous)
    return calls


def test_run_takes_each_step_in_order(tmp_path: Path) -> None:
    page = tmp_path / "answer.html"
    arguments = ["run", "web-10mbit", "--out", str(page)]
    arguments += ["--engine", "engset", "--engine", "packet"]
    for change in ("run.replications=2", "run.duration=2s", "run.warmup=1s"):
        arguments += ["--set", change]
    calls = record_calls(arguments)
    assert page.exists()
    # Titles of figures compare the drawn answers again.
    assert list(dict.fromkeys(call for call in calls if call in STEPS)) == list(STEPS)
    after_engines = calls[calls.index("comparison/compare.py:compare_all") :]
    assert not [call for call in after_engines if call.startswith(ENGINES)]
