"""Modules have specific names."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
SOURCES = ("python/**/*.py", "benches/**/*.py", "crates/*/src/**/*.rs", "crates/*/examples/*.rs")


def test_module_names_are_specific() -> None:
    files = [path.relative_to(ROOT) for pattern in SOURCES for path in ROOT.glob(pattern)]
    assert not [path for path in files if VAGUE & {*path.parts, path.stem}]
