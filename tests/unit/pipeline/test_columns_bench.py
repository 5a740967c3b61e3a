"""The benchmark of the decoder runs, and its logs are logs."""

from pathlib import Path

import pytest
from bench.pipeline import decoder
from bench.pipeline.logs import LogShape, write_log
from bench.pipeline.measure import show

from skyrocket.format.record import RecordWalk


def test_the_benchmark_measures_intact_logs_and_shows_every_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = LogShape(2000, 100, topics=3, queues_per_topic=2, file_size=1 << 20)
    log_bytes = write_log(tmp_path, shape)
    (path,) = (tmp_path / "commitlog").iterdir()
    assert sum(1 for _ in RecordWalk(path.read_bytes(), 0)) == shape.messages  # every CRC is right
    floor, _ = decoder.floor(path, shape, log_bytes, 1)
    rates = decoder.decoder(path, shape, log_bytes, 1)
    show(floor, rates)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(rates)
    assert all(rate.what in line for rate, line in zip([floor, *rates], lines[1:], strict=True))
