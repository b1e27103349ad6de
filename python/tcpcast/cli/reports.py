"""Writes reports: HTML with figures, Markdown without figures."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast.cli.streams import print_message
from tcpcast.process import output
from tcpcast.process.errors import TcpcastError
from tcpcast.process.extras import import_matplotlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import typer
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.captures import Capture
    from tcpcast.comparison.compare import ComparedAnswers
    from tcpcast.report.document import Document
    from tcpcast.scenario import Scenario

documents: list[Document] | None = None
"""In a worker process, a list that receives the reports instead of files."""


def has_figures(reports: Sequence[str] | None) -> bool:
    """Return True if one of the reports contains figures."""
    return any(path.endswith(".html") for path in reports or ())


def check_report_files(reports: Sequence[str] | None, *, force: bool) -> None:
    """Raise before the work starts if reports cannot be written."""
    for path in reports or ():
        if not path.endswith((".html", ".md")):
            raise TcpcastError(f"--out {path}: the name must end in .html or .md")
        if documents is None:
            output.check_file_is_writable(path, kind=output.REPORT_KIND, force=force)
    if has_figures(reports):
        import_matplotlib()


def split_folder_from_reports(out: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """Return the folder among the outputs of a command, if any, and the reports.

    Raises
    ------
    TcpcastError
        There are several folders.
    """
    reports = [path for path in out or () if path.endswith((".html", ".md"))]
    folders = [path for path in out or () if path not in reports]
    if len(folders) > 1:
        raise TcpcastError(
            f"--out {folders[0]} and --out {folders[1]} are different folders; use one"
        )
    return next(iter(folders), None), reports


def write_figures(
    figures: Iterable[tuple[str, Figure]], folder: str, form: str, missing: str, *, force: bool
) -> None:
    """Write figures and print their names, or state that the data in ``missing`` is missing."""
    from tcpcast.report import figures as files  # noqa: PLC0415 - slow to import

    paths = files.write_figures(figures, folder, force=force, form=form)
    if not paths:
        print_message(f"no figure was written, because {missing}")
    for path in paths:
        print_message(f"wrote {path}")


def write_reports_on_captures(
    captures: Sequence[Capture],
    again: str,
    reports: Sequence[str] | None,
    *,
    force: bool,
    **shown: Any,
) -> None:
    """Write the reports on captures, and print their file names.

    ``again`` is the command that reproduces them; ``shown`` states what to show, as for
    ``captures_document``.
    """
    if captures and reports:
        from tcpcast.report.full_report import captures_document  # noqa: PLC0415

        document = partial(captures_document, captures, again, **shown)
        write_reports(document, reports, force=force)


def write_reports_on_run(  # noqa: PLR0913 - the run, and what to write
    compared: ComparedAnswers,
    scenario: Scenario,
    again: str,
    reports: Sequence[str] | None,
    *,
    force: bool,
    amount_bytes: float | None = None,
) -> None:
    """Write the requested reports on the answers to a scenario, and print their names."""
    if reports:
        from tcpcast.report.full_report import run_document  # noqa: PLC0415

        document = partial(run_document, compared, scenario, again, amount_bytes=amount_bytes)
        write_reports(document, reports, force=force)


def reproducing_command(
    file: str,
    answers: Sequence[Answer],
    changes: Sequence[str] | None,
    feed: str = "scenario",
) -> str:
    """Return the command that reproduces the report."""
    words = ["tcpcast", "report", file, "--engine", ",".join(a.engine for a in answers)]
    words += [word for change in changes or () for word in ("--set", change)]
    words += ["--feed", feed] if feed != "scenario" else []
    return shlex.join(words)


_OPTIONS_WITHOUT_EFFECT = {
    *("threads", "as_json", "as_csv", "table", "plot", "form", "force", "scenario", "parquet"),
}
"""Options without effect on reports."""


def typed_command_text(context: typer.Context) -> str:
    """Return the running command line, quoted for a shell."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in _OPTIONS_WITHOUT_EFFECT or any(
            value == none for none in (None, False, parameter.default)
        ):
            continue
        several = value if isinstance(value, list | tuple) else [value]
        name = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument":
            words += map(str, several)
        elif value is True:
            words.append(name)
        else:
            words += [word for each in several for word in (name, str(each))]
    return shlex.join(words)


def write_reports(
    document: Callable[[bool], Document], reports: Sequence[str] | None, *, force: bool
) -> None:
    """Write the requested reports, and print their names.

    ``document`` returns the report; its argument is True if the report should contain figures.
    """
    if documents is not None:
        documents.append(document(has_figures(reports)))
        return
    from tcpcast.report.html import html_page  # noqa: PLC0415 - rarely needed
    from tcpcast.report.markdown import markdown_page  # noqa: PLC0415

    mark = output.REPORT_KIND.mark.decode()
    for path in reports or ():
        page = html_page if path.endswith(".html") else markdown_page
        text = page(document(page is html_page), mark)
        output.write_text(path, text, kind=output.REPORT_KIND, force=force)
        print_message(f"wrote {path}")
