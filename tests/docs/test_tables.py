"""The generated tables of the reference are up to date."""

import inspect
import re
from pathlib import Path

import pytest
import tcpcast
from doc_api import markdown
from doc_options import _code, commands
from doc_pages import ROOT, pages
from doc_tables import TABLES, TABLES_OF_KEYS, fill_tables, scenario_tables, table_names
from tcpcast.answer import UNITS
from tcpcast.answer.metrics import METRICS
from tcpcast.engines.formula import FORMULAS
from tcpcast.scenario import PRESETS, MaxPlusRules, Scenario, TcpRules
from tcpcast.scenario.traffic import DISTRIBUTIONS

REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_up_to_date(page: Path) -> None:
    """If this fails: ``make docs-update``."""
    text = page.read_text(encoding="utf-8")
    assert fill_tables(text) == text


def test_every_table_is_on_a_page() -> None:
    assert TABLES.keys() == set().union(*(table_names(page.read_text("utf-8")) for page in pages()))
    assert scenario_tables() == TABLES_OF_KEYS.keys()


def test_presets_resolve_to_all_defaults() -> None:
    # The name of the preset states its recovery.
    rules = TcpRules().model_dump(exclude_none=True, exclude={"recovery"})
    for name, defaults in PRESETS.items():
        scenario = Scenario.from_dict(
            {
                "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}},
                "traffic": {"kind": "bulk", "flows": 1},
                "tcp": {"stack": name},
                "run": {"duration": "1s"},
            }
        )
        resolved = scenario.resolved()["tcp"]
        own = {key: v for key, v in defaults.get("rules", {}).items() if key != "recovery"}
        shown = rules | own
        if name == "max-plus-reno":
            shown = {"max_plus": MaxPlusRules().model_dump()}
        assert resolved == {"stack": name, **defaults, "rules": shown}


def rows(page: str) -> dict[str, list[str]]:
    """Return the rows of all tables on a page, by the code in their first cell."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.startswith("|"))
    cells = ([c.strip() for c in line.strip("| ").split(" | ")] for line in lines)
    result: dict[str, list[str]] = {}
    for row in cells:
        for name in re.findall(r"`([^`]+)`", row[0]):
            result[name] = row[1:]
    return result


def test_every_metric_is_explained() -> None:
    text = (REFERENCE / "answer.md").read_text(encoding="utf-8")
    items = re.findall(r"^- (`.*?) \(\S+\): ", text, re.MULTILINE)
    assert UNITS.keys() <= set(re.findall(r"`(\w+)`", "".join(items)))
    for name, described in METRICS.items():
        assert described.unit, name
        assert described.meaning, name


def test_every_distribution_is_explained() -> None:
    assert set(DISTRIBUTIONS) <= rows("scenario.md").keys()


def test_every_command_has_its_options() -> None:
    text = (REFERENCE / "names.md").read_text(encoding="utf-8")
    lines = re.findall(r"^- (`--.*`): (.*)$", text, re.MULTILINE)
    options = {option: users for heads, users in lines for option in re.findall(r"--[\w-]+", heads)}
    for name, command in commands().items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                users = options[next(o for o in parameter.opts if o.startswith("--"))]
                assert {f"`{name}`", f"`{name.split()[0]}`"} & set(users.split(", ")), parameter


def test_options_in_a_help_text_are_code() -> None:
    assert _code("With --a-b (see `x --c`), -1.") == "With `--a-b` (see `x --c`), -1."


def test_every_formula_has_its_equations() -> None:
    text = (REFERENCE / "models.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert sections.keys() == FORMULAS.keys()
    for name, section in sections.items():
        assert f"<!-- table: model.{name} -->" in section
        assert section.count("$$\n") >= 2, name


def test_every_public_name_is_documented() -> None:
    text = (REFERENCE / "api.md").read_text(encoding="utf-8")
    assert set(tcpcast.__all__) <= set(re.findall(r"^### (\w+)$", text, re.MULTILINE))


def test_docstring_is_converted_to_markdown() -> None:
    text = """Return B = C*p of :func:`.other`.

    Parameters
    ----------
    rtt_s
        RTT in seconds,
        above 0.
    p, q
        ``None`` for [none].
    """
    assert markdown(inspect.cleandoc(text)) == (
        "Return B = C\\*p of `other`.\n\n\n**Parameters**\n\n"
        "- `rtt_s`: RTT in seconds, above 0.\n- `p, q`: `None` for \\[none\\].\n"
    )
