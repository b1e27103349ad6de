"""A wheel contains the licences of the crates that are compiled into it."""

import tomllib

from doc_notices import NOTICES, crates, listed_crates
from doc_pages import ROOT


def test_every_crate_is_named_with_its_licence() -> None:
    result = crates()
    assert listed_crates() == list(result), "the crates have changed: make docs-update"
    assert any(name.startswith("zstd-sys ") for name in result)
    assert not any(name.startswith(("tcpcast", "syn ", "cc ")) for name in result)


def test_licence_texts_are_in_the_wheel() -> None:
    text = NOTICES.read_text(encoding="utf-8")
    assert "Permission is hereby granted, free of charge" in text
    assert "Copyright (c) Meta Platforms, Inc. and affiliates" in text, "zstd, which is C"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert NOTICES.relative_to(ROOT).as_posix() in project["license-files"]
