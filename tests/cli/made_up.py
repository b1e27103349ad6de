"""Made-up answers with known values, for tests that compare printed text exactly."""

from pathlib import Path

import numpy as np
from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.report.answers import Answers
from tcpcast.scenario import Scenario


def simulated() -> Answer:
    """Return an answer of a simulator: with intervals and a seed; a maximum has no interval."""
    active = np.arange(60)
    queue = np.arange(150)
    rate = np.minimum(800e3, 9.5e6 / np.maximum(active, 1))
    rate[active < 10] = np.nan
    return Answer(
        "packet",
        kind="simulation",
        metrics={
            "connection_rate_bps": Metric(158213.1, 156900.0, 159526.2),
            "on_time_s": Metric(0.9173, 0.9050, 0.9296),
            "utilisation": Metric(0.9912, 0.9909, 0.9915),
            "loss_ratio": Metric(0.04664, 0.04590, 0.04772),
            "queue_mean_pkts": Metric(102.31, 101.1, 103.52),
            "queue_max_pkts": Metric(150.0),
            "jain_index": Metric(0.981, 0.971, 0.991),
            "t0_s": Metric(float("nan")),
            "transfers": Metric(200000.0),
        },
        tables={
            "states": {
                "active": active,
                "probability": np.full(60, 1 / 60),
                "shared_rate_bps": rate,
            },
            "queue": {"queue_pkts": queue, "time_above": np.exp(-queue / 90)},
        },
        notes=texts_to_notes(["only 3 timeouts were seen"]),
        provenance={"version": "0", "scenario": "sha256:00"},
        seed=1,
        wall_s=1.9,
    )


def calculated() -> Answer:
    """Return an answer of a formula: without intervals, with two untrusted values."""
    active = np.arange(135)
    return Answer(
        "engset",
        metrics={
            "connection_rate_bps": Metric(154890.63),
            "on_time_s": Metric(0.9296),
            "offered_load": Metric(1.635),
            "utilisation": Metric(0.9999),
            "loss_ratio": Metric(0.487, trusted=False),
            "queue_mean_pkts": Metric(208.3, trusted=False),
            "jain_index": Metric(1.0),
        },
        tables={
            "states": {
                "active": active,
                "probability": np.full(135, 1 / 135),
                "shared_rate_bps": np.minimum(800e3, 10e6 / np.maximum(active, 1)),
            },
            "queue": {"queue_pkts": np.arange(300), "time_above": np.exp(-np.arange(300) / 200)},
        },
        notes=texts_to_notes(["loss is above 1 %"]),
        provenance={"version": "0", "scenario": "sha256:00"},
    )


def with_classes(answer: Answer) -> Answer:
    answer.tables["by_class"] = {
        "name": np.array(["near", "far"]),
        "sources": np.array([34, 100]),
        "connection_rate_bps": np.array([2.0e5, 1.0e5]),
        "loss_ratio": np.array([0.04, 0.05]),
    }
    return answer


def write_answer_figures(
    answers: list[Answer], scenario: Scenario, folder: Path, form: str = "png"
) -> list[Path]:
    return Answers(answers, scenario).plot(folder, form=form)
