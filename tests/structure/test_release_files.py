"""Tests of the files that describe a release to other systems."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = WORKSPACE["version"]


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    recipe = text("packaging/conda/recipe.yaml")
    assert f'version: "{VERSION}"' in recipe
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    wanted = {re.sub(r"[ ]", "", line.strip("- ")) for line in run.splitlines()}
    assert wanted == {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]}
    assert f"license: {PROJECT['license']}" in recipe


def test_citation_has_the_version() -> None:
    assert f"\nversion: {VERSION}\n" in text("CITATION.cff")


def test_zenodo_has_an_allowed_licence() -> None:
    record = json.loads(text(".zenodo.json"))
    assert record["license"] in PROJECT["license"]
    assert record["upload_type"] == "software"


def test_container_is_built_with_the_oldest_supported_rust() -> None:
    assert f"library/rust:{WORKSPACE['rust-version']}-" in text("Containerfile")


@pytest.mark.parametrize("line", text(".containerignore").split("!")[1:])
def test_container_context_lists_files_that_exist(line: str) -> None:
    assert list(ROOT.glob(line.strip()))


def test_paper_has_the_values_of_the_page_on_agreement() -> None:
    """The table of the paper repeats rows of docs/background/agreement.md."""
    page = text("docs/background/agreement.md")
    end = r"\| (\d+) \| (\d+) \| ([\d.]+ %|) ?\|$"
    rows = re.findall(end, text("paper/paper.md"), re.MULTILINE)
    counts = re.findall(r"\| (\d+) \| (\d+) \| \d+ \| ([^|]+) \| \d+ \|$", page, re.MULTILINE)
    published = {(checked, agree, median.strip("– ")) for checked, agree, median in counts}
    assert len(rows) == 14
    assert set(rows) <= published
    total = re.search(r"(\d+) of (\d+) values agree", page)
    assert total is not None
    assert total[0] in text("paper/paper.md")


def test_paper_cites_each_entry_of_its_bibliography() -> None:
    cited = set(re.findall(r"@(\w+)", text("paper/paper.md")))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", text("paper/paper.bib"), re.MULTILINE))


def test_released_readme_has_only_absolute_links_to_existing_files(tmp_path: Path) -> None:
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    url, ref = "https://example.org/them/tcpcast", f"v{VERSION}"
    command = [sys.executable, str(ROOT / ".ci" / "set-address.py"), url, ref]
    subprocess.run(command, cwd=tmp_path, check=True)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", (tmp_path / "README.md").read_text("utf-8"))
    assert len(links) > 10
    for image, link in links:
        start = f"{url}/{'raw' if image else 'blob'}/{ref}/"
        assert link.startswith(start)
        assert (ROOT / link.removeprefix(start).partition("#")[0]).exists(), link
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Repository"] == url
    assert {**project, "urls": None} == {**PROJECT, "urls": None}
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert again.stderr == "set-address: pyproject.toml already contains [project.urls]\n"
