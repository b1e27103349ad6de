"""What the page shows as one HTML file that needs nothing from outside."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tcpcast.visible import visible
from tcpcast.web.evaluation import curve, evaluate
from tcpcast.web.questions import question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption, th, td { text-align: left; padding: .25rem .75rem .25rem 0; vertical-align: top; }
thead th, caption { border-bottom: 1px solid #777; }
pre { background: #f2f2f2; padding: .75rem; overflow-x: auto; }
.answer { font-size: 1.25rem; }
@media print { body { margin: 0; } pre { white-space: pre-wrap; } }
"""
_OUTSIDE = "†"
_COPIES = (("Command", "command"), ("Python", "python"), ("Scenario", "scenario"))


def report(request: Mapping[str, Any]) -> dict[str, str]:
    """Return ``file``, a name, and ``html``, a document of what the page shows.

    Parameters
    ----------
    request
        As for :func:`tcpcast.web.evaluation.evaluate` and ``curve``; ``points`` are those that
        were simulated for the same values.

    Raises
    ------
    FieldError, TcpcastError
        As these.
    """
    points = request.get("points", [])
    told = evaluate({**request, "simulated": bool(points)})
    drawn = curve(request)
    asked = question(told["question"])
    inputs = [
        (field.label, told["values"].get(field.name, "–"))
        for field in asked.fields
        if field.name in told["values"]
    ]
    parts = [
        f"<h1>{_text(told['title'])}</h1>",
        f"<p>{_text(told['summary'])}</p>",
        *(f'<p class="answer">{_text(sentence)}</p>' for sentence in told["sentences"]),
        *(f"<p>Check: {_text(warning)}</p>" for warning in told["warnings"]),
        _answers(told),
        _own_table(told["table"]),
        _points(drawn, points),
        _curve(drawn),
        "<h2>What was asked</h2>",
        _table("", ["Input", "Value"], inputs),
        "<h2>Ask it again</h2>",
        *(f"<h3>{name}</h3><pre>{_text(told['copy'][key])}</pre>" for name, key in _COPIES),
        f"<p>tcpcast {_text(version('tcpcast'))}. {_OUTSIDE} outside the formula's domain.</p>",
    ]
    title = f"<title>tcpcast: {_text(told['title'])}</title>"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{title}'
    html = f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>'
    body = "\n".join(part for part in parts if part)
    file = f"tcpcast-{asked.name}.html"
    return {"file": file, "html": f"{html}\n<body>\n{body}\n</body></html>\n"}


def _answers(told: Mapping[str, Any]) -> str:
    given = [row for row in told["answers"] if row["value"] is not None]
    rows = [
        (
            row["name"],
            row["text"] + ("" if row["trusted"] else f" {_OUTSIDE}"),
            row["regime"],
            "; ".join([row["what"], *row["warnings"]]),
        )
        for row in given
    ]
    left = [row for row in told["answers"] if row["value"] is None]
    refused = "".join(f"<li>{_text(r['name'])}: {_text(r['not_applicable'])}</li>" for r in left)
    table = _table("Models", ["Model", told["metric"]["label"], "Limited by", "About it"], rows)
    return table + (f"<h2>Do not apply</h2><ul>{refused}</ul>" if refused else "")


def _own_table(table: Mapping[str, Any] | None) -> str:
    return "" if table is None else _table(table["caption"], table["columns"], table["rows"])


def _points(drawn: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (point["text"], value["name"], value["text"], value["interval"], *point["warnings"])
        for point in sorted(points, key=lambda p: float(p["x"]))
        for value in point["values"]
    ]
    columns = [drawn["across"]["label"], "Simulated", drawn["metric"]["label"], "95 % interval"]
    return _table("Simulation", [*columns, "Check"], rows)


def _curve(drawn: Mapping[str, Any]) -> str:
    series = drawn["series"]
    rows = [
        (text, *(_number(each["values"][at], each["trusted"][at]) for each in series))
        for at, text in enumerate(drawn["texts"])
    ]
    caption = f"{drawn['metric']['label']} ({drawn['metric']['unit']})"
    return _table(caption, [drawn["across"]["label"], *(each["name"] for each in series)], rows)


def _number(value: float | None, trusted: bool) -> str:
    return "–" if value is None else f"{value:.4g}" + ("" if trusted else f" {_OUTSIDE}")


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(f"<tr>{''.join(f'<td>{_text(c)}</td>' for c in row)}</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f'<th scope="col">{_text(c)}</th>' for c in columns)
    title = f"<caption>{_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: object) -> str:
    return escape(visible(str(text)))
