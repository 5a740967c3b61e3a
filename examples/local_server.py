"""Where the client examples find a name server: $NAMESRV_ADDR, else a Skyrocket of their own."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def name_server() -> Iterator[str]:
    if "NAMESRV_ADDR" in os.environ:
        yield os.environ["NAMESRV_ADDR"]
        return
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
        command += ["--broker-ip", "127.0.0.1", "--store", store]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            ready = re.search(r"namesrv=\S+:(\d+)", server.stdout.readline())
            assert ready is not None, "the server did not start"
            try:
                yield f"127.0.0.1:{ready[1]}"
            finally:
                server.terminate()
