"""The process of a link, started by :mod:`tcpcast.emulation.launch` and by nobody else.

It leaves its network namespace, so it is a process of its own: whoever asks keeps theirs.
"""

from __future__ import annotations

import os
import pickle
import sys

from tcpcast import _native


def main() -> None:
    """Read the question, run the link, and end with the status of the near program."""
    question, lifeline, answer = map(int, sys.argv[1:4])
    # What runs at the ends of the link gets none of them.
    for descriptor in (question, lifeline, answer):
        os.set_inheritable(descriptor, False)
    with open(question, "rb") as file:
        link = pickle.load(file)
    run = _native.run_traffic if "flows" in link else _native.run_link
    status = run(link, lifeline=lifeline, answer=answer)
    os._exit(status)


if __name__ == "__main__":
    main()
