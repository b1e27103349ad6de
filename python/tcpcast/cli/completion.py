"""``tcpcast completion``: a script by which a shell completes commands, options and names."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tcpcast.cli.complete import VARIABLE

_DEFINED = "compdef _tcpcast_completion tcpcast"
_DEFINED_OR_ASKED = f"""{_DEFINED}
if [ "$funcstack[1]" = "_tcpcast" ]; then _tcpcast_completion "$@"; fi"""

EXAMPLE = "tcpcast completion bash > ~/.local/share/bash-completion/completions/tcpcast"


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")
    ],
) -> None:
    """Print the script that makes a shell complete tcpcast.

    For zsh: eval "$(tcpcast completion zsh)" in ~/.zshrc. For fish: into the file
    ~/.config/fish/completions/tcpcast.fish.
    """
    from typer import completion as shells  # noqa: PLC0415 - not for the help

    script = shells.get_completion_script(  # type: ignore[attr-defined]
        prog_name="tcpcast", complete_var=VARIABLE, shell=shell
    )
    # zsh may load the file as the function _tcpcast when it is first asked: then it answers, too.
    print(script.replace(_DEFINED, _DEFINED_OR_ASKED))
