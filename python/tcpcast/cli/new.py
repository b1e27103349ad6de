"""``tcpcast new``: copies a packaged scenario for editing."""

from __future__ import annotations

from pathlib import Path

from tcpcast.cli.streams import print_message
from tcpcast.process import output
from tcpcast.scenario import read_packaged_text
from tcpcast.scenario.loading import packaged_summaries


def new(*, name: str | None, force: bool) -> None:
    """Copy a scenario into the working folder, or print all names."""
    if name is None:
        for scenario, summary in packaged_summaries().items():
            print(f"{scenario:<24}{summary}".rstrip())
        return
    text = read_packaged_text(name)
    target = Path(f"{name}.toml")
    output.check_file_is_writable(target, force=force)
    output.write_text(target, text, force=force)
    print_message(f"wrote {target}; try: tcpcast run {target}")
