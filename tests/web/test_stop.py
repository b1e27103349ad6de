"""Ctrl-C ends the server of the page, also during a simulation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from urllib.parse import urlencode

import pytest

pytest.importorskip("uvicorn", reason="needs uvicorn: the extra web")

COMMAND = [sys.executable, "-m", "tcpcast", "serve", "--no-browser", "--port", "0"]


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_ctrl_c_during_a_simulation_prints_no_traceback() -> None:
    """Regression: the terminal also sends Ctrl-C to the worker, whose interrupt became an error."""
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            origin = url.partition("/?")[0]
            with urllib.request.urlopen(url, timeout=60) as response:
                cookie = response.headers["set-cookie"].partition(";")[0]
            values = urlencode({"file": "office-50mbit"})
            request = urllib.request.Request(
                f"{origin}/api/answer/run?{values}",
                b"",
                {"cookie": cookie, "origin": origin},
                method="POST",
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                assert "progress" in json.loads(response.readline())
                os.killpg(server.pid, signal.SIGINT)
                last = json.loads(response.readlines()[-1])
            _, errors = server.communicate(timeout=60)
        finally:
            server.kill()
    assert last["error"]["message"] == "the server was stopped"
    assert errors.splitlines() == ["tcpcast: serving the page; press Ctrl-C to stop"]
    assert server.returncode == 0
