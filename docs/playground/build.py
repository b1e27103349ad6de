"""Write the script of the playground: ``build.py MODULE.wasm OUT.js``, run by ``make playground``.

A page that is opened from a file may not fetch other files or import modules. So the script
contains everything: the WebAssembly module (gzip in base64), the experiments, the plots, and the
page itself.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULES = (
    HERE / "vendor" / "uPlot.esm.js",
    HERE / "elements.js",
    HERE / "drawing.js",
    HERE / "plot.js",
    HERE / "playground.js",
    HERE / "calculator.js",
    HERE / "start.js",
)
"""Each one imports only earlier ones."""

IMPORT = re.compile(r'^import (?P<names>[^"]+) from "(?P<path>[^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:function|class|const) (?P<name>[\w$]+))", re.MULTILINE)
DEFAULT = re.compile(r"^export \{ (?P<name>\w+) as default \};$", re.MULTILINE)


def as_function(module: Path) -> str:
    """Return a module as a function call that stores its exports in ``modules``."""
    text = module.read_text(encoding="utf-8")
    names = [f"default: {match['name']}" for match in DEFAULT.finditer(text)]
    # uPlot has a default export only, and others in comments.
    names = names or [match["name"] for match in EXPORT.finditer(text)]
    text = DEFAULT.sub("", EXPORT.sub("", IMPORT.sub(_constants, text)))
    if re.search(r"^(import|export)\b", text, re.MULTILINE):
        raise ValueError(f"{module}: an import or export of a form that is not supported")
    exports = f"modules[{json.dumps(module.name)}] = {{ {', '.join(names)} }};"
    return f"(() => {{\n{text}\n{exports}\n}})();\n"


def _constants(match: re.Match[str]) -> str:
    names = match["names"]
    wanted = names if names.startswith("{") else f"{{ default: {names} }}"
    return f"const {wanted} = modules[{json.dumps(Path(match['path']).name)}];"


def script(wasm: bytes, experiments: object, templates: object) -> str:
    """Return the script of the page."""
    packed = base64.b64encode(gzip.compress(wasm, mtime=0)).decode()
    plain, paths = (
        json.dumps(part, allow_nan=False, separators=(",", ":"))
        for part in (experiments, templates)
    )
    parts = [
        f"modules.wasm = {json.dumps(packed)};\n",
        f"modules.experiments = {plain};\n",
        f"modules.templates = {paths};\n",
        *map(as_function, MODULES),
    ]
    return "(() => {\nconst modules = {};\n" + "".join(parts) + "})();\n"


def main(module: str, out: str) -> None:
    """Write the script."""
    from experiments import data, templates  # noqa: PLC0415 - needs tcpcast, which importers may lack

    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(Path(module).read_bytes(), data(), templates()), encoding="utf-8")
    print(f"Wrote {out}, {path.stat().st_size / 1e6:.2f} MB.")


if __name__ == "__main__":
    main(*sys.argv[1:])
