"""How Sphinx lays the documentation out as a site: ``make docs`` builds it into ``out/site``.

The pages are plain Markdown, which a forge shows unchanged. This file adds the other parts of the
site: the navigation, from the lists of links in ``docs/README.md``; equations as MathML, which
browsers draw without a script; the start page. The source folder is the repository's root, so that
links between its top and ``docs/`` work.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.utils.math import latex2mathml
from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers.shell import BashLexer
from pygments.token import Generic

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).parents[1]
START, CONTENTS = "README", "docs/README"

project = "tcpcast"
project_copyright = "the authors of tcpcast"
extensions = ["myst_nb"]  # plain pages by myst_parser, and notebooks
root_doc = START
include_patterns = ["*.md", "docs/**.md", "docs/**.ipynb"]
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"),
    "**/__pycache__",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # a notebook has its outputs; tests/docs runs it
suppress_warnings = ["config.cache"]  # the renderer of equations is a function

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "tcpcast"
# `make playground` builds the script, which contains the simulator as WebAssembly.
PLAYGROUND = ROOT / "out" / "playground"
PLOTS = ROOT / "docs" / "playground" / "vendor" / "uPlot.min.css"
html_static_path = ["static"]
if PLAYGROUND.exists():
    html_static_path += [str(PLAYGROUND), str(PLOTS)]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "search.js")  # order of the results
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_domain_indices = False
html_use_index = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

KEYWORDS = {
    "docs/calculator": "bandwidth throughput calculator",
    "docs/how-to/home": "speedtest speed test router wifi bufferbloat dsl cable fibre starlink",
    "docs/how-to/link": "netem emulator quic docker container github actions pytest",
    "docs/how-to/networks": "starlink satellite topology datacentre",
    "docs/how-to/predict": "bandwidth throughput calculator speedtest",
    "docs/how-to/read-captures": "slow download upload wireshark tcpdump pcap",
    "docs/install": "docker podman container wheel pip download",
    "docs/tutorial": "how many users capacity planning",
}
"""Words by which a search finds a page that does not contain them."""

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ITEM = re.compile(r"^(?:-|\d+\.) .*(?:\n  .*)*", re.MULTILINE)
PAGE = re.compile(r"\]\(([^)#\s]+\.(?:md|ipynb))\)")


def navigation(text: str) -> str:
    """Return a hidden table of contents for each heading with a list of links to pages."""
    parts = HEADING.split(text)[1:]
    trees = []
    for caption, part in zip(parts[::2], parts[1::2], strict=True):
        links = (link for item in ITEM.findall(part) for link in PAGE.findall(item))
        pages = "\n".join(f"/{_from_root(link)}" for link in links)
        if pages:
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n")
    return "\n".join(trees)


def _from_root(link: str) -> str:
    target = (ROOT / "docs" / link).resolve()
    return target.relative_to(ROOT).as_posix()


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Give pages their keywords, and the start page the contents of the documentation."""
    if name in KEYWORDS:
        words = ", ".join(KEYWORDS[name].split())  # Sphinx takes what commas separate for one word
        head = f"---\nmyst:\n  html_meta:\n    keywords: {words}\n---\n\n"
        source[0] = head + source[0]
    if name == START:
        app.env.note_dependency(ROOT / f"{CONTENTS}.md")
        contents = (ROOT / f"{CONTENTS}.md").read_text(encoding="utf-8")
        whole = f"```{{toctree}}\n:hidden:\n\n/{CONTENTS}\n```"
        source[0] += f"\n{whole}\n\n{navigation(contents)}"


class Session(RegexLexer):
    """A block of commands and their output; a line that begins with ``$`` is a command."""

    tokens: ClassVar = {
        "root": [
            (r"(\$ )((?:.*\\\n)*.*\n)", bygroups(Generic.Prompt, using(BashLexer))),
            (r".*\n", Generic.Output),
        ]
    }


def inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write an equation within a line."""
    writer.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def displayed(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation on separate lines."""
    writer.body.append(
        f'<div class="math" tabindex="0">{_mathml(node.astext(), as_block=True)}</div>\n'
    )
    raise nodes.SkipNode


def _mathml(latex: str, *, as_block: bool) -> str:
    mathml: str = latex2mathml.tex2mathml(latex, as_block=as_block)
    return mathml


ACCESSIBLE = (
    # Readers without a mouse scroll wide blocks and tables with the keyboard.
    (re.compile(r"<pre(?= *>)"), '<pre tabindex="0"'),
    (
        re.compile(r'<div class="(?=(?:\S+ )*table-wrapper)(?![^>]*tabindex)'),
        r'<div tabindex="0" class="',
    ),
    # Roles and names that the theme lacks.
    (re.compile(r'role="heading"(?! aria-level)'), 'role="heading" aria-level="2"'),
    (
        re.compile(r'<aside class="sidebar-drawer"'),
        '<aside aria-label="Pages" class="sidebar-drawer"',
    ),
    (re.compile(r'<aside class="toc-drawer'), '<aside aria-label="Sections" class="toc-drawer'),
)
"""Corrections of the theme's pages: a pattern, and its replacement."""


def correct_theme(app: Sphinx, error: Exception | None) -> None:
    """Correct what the theme's pages lack for keyboards and screen readers."""
    if error is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = corrected = page.read_text(encoding="utf-8")
            for pattern, replacement in ACCESSIBLE:
                corrected = pattern.sub(replacement, corrected)
            if corrected != text:
                page.write_text(corrected, encoding="utf-8")


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Make the start page what a browser opens in a folder."""
    if error is None and app.builder.format == "html":
        shutil.copyfile(app.outdir / f"{START}.html", app.outdir / "index.html")


def add_playground(app: Sphinx, name: str, *_: object) -> None:
    """Load the script and styles of the playground and the calculator on their pages only."""
    if name in {"docs/gallery", "docs/calculator"} and PLAYGROUND.exists():
        app.add_css_file(PLOTS.name)
        app.add_css_file("playground.css")
        app.add_js_file("playground.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the lexer and the equation renderer."""
    app.add_lexer("console", Session)
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.connect("source-read", add_navigation)
    app.connect("html-page-context", add_playground)
    app.connect("build-finished", correct_theme)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
