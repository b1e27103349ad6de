"""``tcpcast completion``: a script for shells to complete commands, options and names."""

from __future__ import annotations

from tcpcast.cli.complete import COMPLETION_VARIABLE

_REGISTRATION = "compdef _tcpcast_completion tcpcast"
_REGISTRATION_OR_COMPLETION = f"""{_REGISTRATION}
if [ "$funcstack[1]" = "_tcpcast" ]; then _tcpcast_completion "$@"; fi"""


def completion(*, shell: str) -> None:
    """Print the script for a shell."""
    from typer import completion as shells  # noqa: PLC0415 - not needed for the help

    script = shells.get_completion_script(  # type: ignore[attr-defined]
        prog_name="tcpcast", complete_var=COMPLETION_VARIABLE, shell=shell
    )
    # zsh may load the file as the function _tcpcast on first use; then it must also complete.
    print(script.replace(_REGISTRATION, _REGISTRATION_OR_COMPLETION))
