"""The release workflow builds for the targets of the licence check, with the tree's tools."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

yaml = pytest.importorskip("yaml", reason="needs PyYAML: make setup")


def workflow() -> Any:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def toml(name: str) -> Any:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def test_wheel_targets_equal_licence_targets() -> None:
    built = workflow()["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    assert {wheel["target"] for wheel in built} == set(toml("deny.toml")["graph"]["targets"])
    machines = {wheel["target"]: wheel["machine"] for wheel in built}
    assert len(set(machines.values())) == len(machines), "each target runs on its own machine"


def test_linux_wheel_tag_equals_release_check() -> None:
    check = (ROOT / ".ci" / "release-check").read_text(encoding="utf-8")
    for wheel in workflow()["jobs"]["wheel"]["strategy"]["matrix"]["include"]:
        if "linux" in wheel["target"]:
            assert f'options="{wheel["options"]}"' in check


def test_only_upload_has_credentials_and_needs_all_jobs() -> None:
    result = workflow()
    jobs = result["jobs"]
    assert result["permissions"] == {"contents": "read"}
    signs_in = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert signs_in == ["publish"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


def test_tool_versions_equal_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^UV_VERSION := (\S+)$", makefile, re.MULTILINE)
    assert workflow()["env"]["UV_VERSION"] == version
    assert "release" in toml("pyproject.toml")["dependency-groups"]
    minimum = toml("pyproject.toml")["project"]["requires-python"].removeprefix(">=")
    assert workflow()["env"]["WITH_TOOLS"].endswith(f"--python {minimum}")
