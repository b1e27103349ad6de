"""Main program of a link's process, started only by :mod:`tcpcast.emulation.launch`.

A separate process is necessary because it changes its network namespace.
"""

from __future__ import annotations

import os
import pickle
import sys

from tcpcast import _native


def main() -> None:
    """Read the request, run the link, and exit with the status of the near program."""
    request, lifeline, answer = map(int, sys.argv[1:4])
    # The programs at the ends of the link do not inherit these descriptors.
    for descriptor in (request, lifeline, answer):
        os.set_inheritable(descriptor, False)
    with open(request, "rb") as file:
        link = pickle.load(file)
    run = _native.run_traffic if "flows" in link else _native.run_link
    status = run(link, lifeline=lifeline, answer=answer)
    os._exit(status)


if __name__ == "__main__":
    main()
