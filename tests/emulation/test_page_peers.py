"""Clients without the work of a browser take the simulated time over HTTP/2."""

import pytest

from emulation.page_peer import PLAIN_DELAY_MS
from emulation.page_peers import PATHS, measure_pages, missing_program, simulate


@pytest.mark.parametrize(("client", "page"), [("curl", (1, 50_000)), ("plain", (8, 200_000))])
def test_client_takes_the_simulated_time_without_loss(client: str, page: tuple[int, int]) -> None:
    missing = missing_program(client)
    if missing:
        pytest.skip(f"needs {missing}, which `make peers` installs")
    # A busy machine only adds time, and little beside a round trip of 300 ms.
    path, url = PATHS[6], f"/{page[0]}/{page[1]}"
    loads = measure_pages("2", path, 4, [url], seed=1, client=client)[url]
    shortest_ms = min(load["page"] for load in loads)
    assert shortest_ms == pytest.approx(simulate("2", path, page, PLAIN_DELAY_MS), rel=0.1)
