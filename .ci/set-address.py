"""Writes the address of the repository into the files of a release, for the page on PyPI.

Usage: ``set-address.py URL REF``, such as ``https://github.com/NAME/tcpcast v1.1.0``. It adds
``[project.urls]`` to ``pyproject.toml``, and makes the links of ``README.md`` absolute. The tree
has no address, so that a fork releases with its own.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def absolute(text: str, url: str, ref: str) -> str:
    """Return Markdown whose links start at the repository; images link to the file itself."""

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        kind = "raw" if image else "blob"
        return f"{image}[{words}]({url}/{kind}/{ref}/{target})"

    return LINK.sub(link, text)


def with_urls(project: str, url: str, ref: str) -> str:
    """Return ``pyproject.toml`` with the table of addresses."""
    if "[project.urls]" in project:
        raise SystemExit("set-address: pyproject.toml already contains [project.urls]")
    urls = (
        "[project.urls]\n"
        f'Repository = "{url}"\n'
        f'Documentation = "{url}/blob/{ref}/docs/README.md"\n'
        f'Changelog = "{url}/blob/{ref}/CHANGELOG.md"\n'
        f'Issues = "{url}/issues"\n\n'
    )
    return project.replace("[project.scripts]", urls + "[project.scripts]", 1)


def main(url: str, ref: str) -> None:
    """Change both files in the current folder."""
    if not url.startswith("https://"):
        raise SystemExit(f"set-address: {url} must start with https://")
    url = url.rstrip("/")
    readme, project = Path("README.md"), Path("pyproject.toml")
    project.write_text(with_urls(project.read_text("utf-8"), url, ref), encoding="utf-8")
    readme.write_text(absolute(readme.read_text("utf-8"), url, ref), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
