"""Updates outputs and tables in the documentation; check the diff afterwards.

Run by ``make docs-update``. It prints the sentences of a page with numbers that were in the outputs
before and no longer are.
"""

import shutil
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # modules that all tests share

import doc_notebook
import doc_notices
from doc_figures import figures, look_alike
from doc_pages import ROOT, Block, Reader, blocks, follows, pages, stale_numbers, timeless
from doc_tables import fill_tables


def updated(page: Path) -> str:
    """Return a page's text with all outputs and tables up to date."""
    lines = page.read_text(encoding="utf-8").splitlines()
    changes: list[tuple[Block, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder))
        result = blocks(page)
        for block, after in zip_longest(result, result[1:]):
            if block.is_measured:
                print(f"{block.location}: unchanged, because it is a measurement")
            elif block.needs is not None and shutil.which(block.needs) is None:
                print(f"{block.location}: unchanged, because {block.needs} is missing")
            elif block.language == "python":
                printed = reader.output(block)
                if after is not None and follows(block, after):
                    changes.append((after, printed))
            else:
                shown = reader.read(block)
                if shown is not None:
                    changes.append((block, shown))
        _keep_figures(page, Path(folder))
    for block, shown in reversed(changes):
        # Outputs that differ only in times are unchanged.
        if timeless(block.lines) != timeless(shown):
            lines[block.first : block.last] = shown
    return fill_tables("\n".join(lines) + "\n")


def _keep_figures(page: Path, folder: Path) -> None:
    """Copy the figures that the page's commands drew to their places in the docs."""
    for written, kept in figures(page).items():
        drawn = (folder / written).read_text(encoding="utf-8")
        if not kept.exists() or not look_alike(drawn, kept.read_text(encoding="utf-8")):
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(drawn, encoding="utf-8")
            print(f"drew {kept.relative_to(ROOT)}")


def updated_notebook(page: Path) -> str:
    """Return a notebook's text with all outputs up to date."""
    with tempfile.TemporaryDirectory() as folder:
        return doc_notebook.updated(page, Path(folder))


def main() -> None:
    """Update the named pages, or all."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    if not chosen:
        doc_notices.write()
        chosen = [*pages(), *doc_notebook.notebooks()]
    for page in chosen:
        text = updated_notebook(page) if page.suffix == ".ipynb" else updated(page)
        before = page.read_text(encoding="utf-8")
        if text != before:
            page.write_text(text, encoding="utf-8")
            print(f"updated {page.relative_to(ROOT)}")
            for line in stale_numbers(before, text) if page.suffix == ".md" else ():
                print(f"{page.relative_to(ROOT)}:{line}")


if __name__ == "__main__":
    main()
