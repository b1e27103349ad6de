"""Writes reports: HTML with figures, Markdown without figures."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from tcpcast import output
from tcpcast.cli.streams import print_message
from tcpcast.extras import import_matplotlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import typer
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.captures import Capture
    from tcpcast.compare import ComparedAnswers
    from tcpcast.report.document import Document
    from tcpcast.scenario import Scenario

documents: list[Document] | None = None
"""In a worker process, a list that receives the reports instead of files."""


def check_report_files(html: str | None, markdown: str | None, *, force: bool) -> None:
    """Raise before the work starts if reports cannot be written."""
    for path in (html, markdown) if documents is None else ():
        if path is not None:
            output.check_file_is_writable(path, kind=output.REPORT_KIND, force=force)
    if html is not None:
        import_matplotlib()


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
    again: Sequence[str],
    html: str | None,
    markdown: str | None,
    *,
    force: bool,
) -> None:
    """Write the reports on captures, and print their file names; ``again`` reproduces them."""
    if captures and (html, markdown) != (None, None):
        from tcpcast.report.full_report import captures_document  # noqa: PLC0415

        document = partial(captures_document, captures, shlex.join(again))
        write_reports(document, html, markdown, force=force)


def write_reports_on_run(  # noqa: PLR0913 - what to write, and where
    compared: ComparedAnswers,
    scenario: Scenario,
    again: str,
    html: str | None,
    markdown: str | None,
    *,
    force: bool,
) -> None:
    """Write the requested reports on the answers to a scenario, and print their names."""
    if (html, markdown) != (None, None):
        from tcpcast.report.full_report import run_document  # noqa: PLC0415

        document = partial(run_document, compared, scenario, again)
        write_reports(document, html, markdown, force=force)


def reproducing_command(
    file: str,
    answers: Sequence[Answer],
    changes: Sequence[str] | None,
    seed: int | None,
    feed: str = "scenario",
) -> str:
    """Return the command that reproduces the report."""
    words = ["tcpcast", "report", file, "--engine", ",".join(a.engine for a in answers)]
    words += [word for change in changes or () for word in ("--set", change)]
    words += ["--seed", str(seed)] if seed is not None else []
    words += ["--feed", feed] if feed != "scenario" else []
    return shlex.join(words)


_OPTIONS_WITHOUT_EFFECT = {"threads", "as_json", "plot", "form", "force"}
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
        name = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif value is True:
            words.append(name)
        else:
            several = value if isinstance(value, list | tuple) else [value]
            words += [word for each in several for word in (name, str(each))]
    return shlex.join(words)


def write_reports(
    document: Callable[[bool], Document], html: str | None, markdown: str | None, *, force: bool
) -> None:
    """Write the requested reports, and print their names.

    ``document`` returns the report; its argument is True if the report should contain figures.
    """
    if documents is not None:
        documents.append(document(html is not None))
        return
    from tcpcast.report.html import html_page  # noqa: PLC0415 - rarely needed
    from tcpcast.report.markdown import markdown_page  # noqa: PLC0415

    mark = output.REPORT_KIND.mark.decode()
    if html is not None:
        _write_and_print_file_name(html, html_page(document(True), mark), force=force)
    if markdown is not None:
        _write_and_print_file_name(markdown, markdown_page(document(False), mark), force=force)


def _write_and_print_file_name(path: str, text: str, *, force: bool) -> None:
    output.write_text(path, text, kind=output.REPORT_KIND, force=force)
    print_message(f"wrote {path}")
