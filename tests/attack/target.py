"""The server that is attacked: a program of its own, whose memory, log and HTTP pages can be looked at."""

import re
from pathlib import Path
from typing import Final

from tests.http_get import get
from tests.integration.program import Standalone
from tests.ports import free_port

_SETTINGS: Final = ("metricsExporterType=PROM", "mappedFileSizeCommitLog=67108864")


class Target(Standalone):
    """`skyrocket standalone`, ready; `open_files` is the limit of descriptors that it is started with."""

    def __init__(
        self, folder: Path, *settings: str, arguments: tuple[str, ...] = (), open_files: int | None = None
    ) -> None:
        self.metrics_port = free_port()
        port = f"metricsPromExporterPort={self.metrics_port}"
        super().__init__(folder, *_SETTINGS, port, *settings, arguments=arguments, open_files=open_files)

    @property
    def resident_mb(self) -> float:
        """Memory that the process uses now."""
        return self._status_mb("VmRSS")

    @property
    def peak_mb(self) -> float:
        """The most that it ever used."""
        return self._status_mb("VmHWM")

    def _status_mb(self, name: str) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", text)
        assert found is not None, text
        return int(found[1]) / 1024

    def page(self, path: str) -> tuple[int, str]:
        """`/health`, `/ready` or `/metrics`: status and text."""
        return get(self.metrics_port, path)

    def metric(self, name: str, **labels: str) -> float:
        """A number of /metrics; that of several samples is their sum."""
        total, found = 0.0, False
        for line in self.page("/metrics")[1].splitlines():
            if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
                total, found = total + float(line.rpartition(" ")[2]), True
        assert found, f"no {name} with {labels}"
        return total
