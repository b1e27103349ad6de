"""Links within the documentation have a target."""

import re
from pathlib import Path

import pytest
from doc_pages import ROOT, anchor, pages

LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return {anchor(title) for title in HEADING.findall(text)}


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_targets(page: Path) -> None:
    for link in links(page):
        if link.startswith(("https://", "mailto:")):
            continue
        assert not link.startswith("http://"), f"{page}: {link} must use https"
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{page}: {link} is outside of the repository"
        assert target.exists(), f"{page}: {link} does not exist"
        if place:
            assert place in anchors(target), f"{page}: no heading for {link}"


def test_every_page_can_be_reached() -> None:
    reached = {ROOT / "README.md"}
    while True:
        result = {
            (page.parent / link.partition("#")[0]).resolve()
            for page in reached
            for link in links(page)
            if link.partition("#")[0].endswith(".md") and "://" not in link
        }
        if result <= reached:
            break
        reached |= result
    assert set(pages()) <= reached


def test_lists_of_topics_have_the_stated_length() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    lists = re.findall(r"<summary>(\d+) \w+</summary>(.*?)</details>", text, re.DOTALL)
    assert len(lists) == 6
    for count, items in lists:
        assert len(re.findall(r"^- ", items, re.MULTILINE)) == int(count), items


def test_start_pages_count_the_questions_of_the_gallery() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^## .*\?$", gallery, re.MULTILINE)) == 13
    assert "\n\nThirteen questions" in gallery
    pages = {"README.md": "thirteen answers", "docs/README.md": "thirteen questions"}
    for page, words in pages.items():
        assert words in (ROOT / page).read_text(encoding="utf-8")
