"""`Answers.plot()` without a directory: figures for notebooks."""

import re

import pytest
import tcpcast

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install matplotlib")


def test_figures_are_indexed_by_position_and_name() -> None:
    figures = tcpcast.run("web-10mbit", ["engset"]).plot()
    assert repr(figures) == "<Figures: states, sharing, queue>"
    assert figures["queue"] is figures[2]
    assert len(figures[:2]) == 2
    title = " ".join(figures["states"].get_suptitle().split())
    assert title == (
        "90 % of the time, the number of active users lies between 51 and 78 users (by the formula "
        "engset)"
    )
    with pytest.raises(
        KeyError, match="there is no figure 'windows'; the figures are states, sharing, queue"
    ):
        figures["windows"]


def test_notebook_shows_figures_with_titles() -> None:
    shown = tcpcast.run("web-10mbit", ["engset"]).plot()._repr_html_()
    assert shown.count("<svg") == shown.count("</figure>") == 3
    captions = re.findall("<figcaption>([^<]*)</figcaption>", shown)
    assert any("of the queue is" in caption for caption in captions)


def test_answers_without_tables_have_no_figures() -> None:
    figures = tcpcast.run("lossy-path", ["pftk"]).plot()
    assert list(figures) == []
    assert repr(figures) == "<Figures: none>"
    assert figures._repr_html_() == ""
