"""``tcpcast predict``: predictions for one path by all applicable formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.options import check_one_format
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.engines import RunOptions
from tcpcast.errors import TcpcastError
from tcpcast.path.options import (
    PathOptions,
    expand_points,
    make_bulk_scenario,
    make_loss_curve_points,
)
from tcpcast.path.prediction import predict_point
from tcpcast.report.json import encode
from tcpcast.report.predict import (
    DISPLAYED_METRICS,
    prediction_parts,
    range_parts,
    refusal_with_option_names,
    with_option_names,
)
from tcpcast.report.prediction import csv_text, prediction_json, specified_loss_ratio
from tcpcast.report.summary import caveats_of_answer, worst_warnings
from tcpcast.report.text import print_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcpcast.report.prediction import Prediction


def predict(  # noqa: PLR0913 - one parameter per option
    *,
    packet: bool,
    count: int | None,
    explain: bool,
    plot: str | None,
    form: str,
    force: bool,
    as_csv: bool,
    as_json: bool,
    **path: Any,
) -> None:
    """Print the predictions for a path, and draw them."""
    options = PathOptions(**path)
    _check_format_options(options, explain=explain, as_csv=as_csv, as_json=as_json)
    if plot is not None:
        _check_plot_options(options, plot, form, force=force)
        ignore_broken_pipe()
    points = expand_points(options, count)
    predictions = _predict_points(options, points, packet=packet, tables=as_json or packet)
    if as_json or as_csv:
        _print_json_or_csv(predictions, as_json=as_json)
    else:
        _print_text(predictions, explain=explain)
    if _report_interrupt(predictions, points):
        raise typer.Exit(130)
    if plot is not None:
        _write_figures(options, points, predictions, plot, form, force=force)
    raise typer.Exit(1 if any(a.incomplete_reason for p in predictions for a in p.answers) else 0)


def _check_format_options(
    options: PathOptions, *, explain: bool, as_csv: bool, as_json: bool
) -> None:
    """Raise before the calculation if options cannot be combined."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    if explain and (options.ranges or as_csv or as_json):
        if options.ranges:
            raise TcpcastError(
                f"--explain needs single values, but --{options.ranges[0]} is a range; write one "
                "value"
            )
        raise TcpcastError(
            "--explain cannot be combined with --csv or --json; omit --explain, because the "
            "output of --json contains all steps (key provenance)"
        )


def _check_plot_options(options: PathOptions, folder: str, form: str, *, force: bool) -> None:
    """Raise before the calculation if no figure applies or the file cannot be written."""
    for name in options.ranges:
        if name != "loss":
            raise TcpcastError(
                "--plot draws goodput against loss, so only --loss can be a "
                f"range; write one value for --{name}"
            )

    from tcpcast.report.figures import check_figure_files  # noqa: PLC0415
    from tcpcast.report.regimes import FILE_NAME  # noqa: PLC0415

    check_figure_files(folder, [f"{FILE_NAME}.{form}"], force=force)


def _predict_points(
    options: PathOptions, points: Sequence[Mapping[str, str]], *, packet: bool, tables: bool = False
) -> list[Prediction]:
    """Return the predictions for all combinations of ranges, with simulations if requested.

    After an interrupt, return the finished predictions, or raise if there are none.
    """
    predictions: list[Prediction] = []
    with progress_bar("path") as progress:
        for done, point in enumerate(points):
            advance = _progress_of_point(progress, done, len(points)) if packet else None
            how = RunOptions(progress=advance, tables=tables)
            try:
                predictions.append(predict_point(options, point, packet=packet, run_options=how))
            except KeyboardInterrupt:
                if not predictions:
                    raise
                break
            if predictions[-1].is_interrupted:
                break
    return predictions


def _report_interrupt(
    predictions: Sequence[Prediction], points: Sequence[Mapping[str, str]]
) -> bool:
    """Return True if the user interrupted, and print the number of finished predictions."""
    if len(predictions) < len(points):
        print_message(f"interrupted after {len(predictions)} of {len(points)} predictions")
        return True
    return any(prediction.is_interrupted for prediction in predictions)


def _progress_of_point(
    progress: Callable[[float], None] | None, done: int, points: int
) -> Callable[[float], None] | None:
    """Return a function that converts the progress of one prediction to the total progress."""
    if progress is None:
        return None
    return lambda share: progress((done + share) / points)


def _print_text(predictions: Sequence[Prediction], *, explain: bool) -> None:
    if predictions[0].varied_options:
        print_parts(range_parts(predictions))
    else:
        print_parts(prediction_parts(predictions[0], explain=explain))


def _print_json_or_csv(predictions: Sequence[Prediction], *, as_json: bool) -> None:
    """Print JSON or CSV, and distinct warnings on stderr."""
    if as_json:
        documents = [prediction_json(prediction) for prediction in predictions]
        print(encode({"points": documents} if predictions[0].varied_options else documents[0]))
    else:
        print(csv_text(predictions), end="")
    answers = [answer for prediction in predictions for answer in prediction.answers]
    notes = [
        (
            a,
            caveats_of_answer(a)
            if as_json
            else worst_warnings(caveats_of_answer(a), DISPLAYED_METRICS),
        )
        for a in answers
    ]
    messages = [
        f"{answer.engine}: {text}"
        for answer, own in notes
        for text in (
            *([] if answer.applies else [refusal_with_option_names(answer)]),
            *map(with_option_names, own),
        )
    ]
    for message in dict.fromkeys(messages):
        print_message(message)


def _write_figures(  # noqa: PLR0913 - what to draw, and where to write it
    options: PathOptions,
    points: Sequence[Mapping[str, str]],
    predictions: Sequence[Prediction],
    folder: str,
    form: str,
    *,
    force: bool,
) -> None:
    """Run the formulas for many losses around the requested losses, and draw the goodput."""
    given = [specified_loss_ratio(make_bulk_scenario(options, point)) for point in points]
    steady = replace(options, size=None)
    drawn = make_loss_curve_points(steady, given)
    curve = _predict_points(steady, drawn, packet=False)
    if len(curve) < len(drawn):  # interrupted; an incomplete curve would be misleading
        raise KeyboardInterrupt
    mark = given[0] if len(given) == 1 else None
    from tcpcast.report.regimes import plot_regimes  # noqa: PLC0415

    path = plot_regimes(
        curve, folder, requested_loss=mark, requested=predictions, force=force, form=form
    )
    print_message(f"wrote {path}")
