"""docs/start/spark-in-ten-minutes.md runs as it stands, but for the address and the directory."""

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.testing import LocalCluster
from tests import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "start" / "spark-in-ten-minutes.md"


@pytest.mark.timeout(400)
def test_the_page_does_what_it_says(
    spark: "SparkSession", rocketmq: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text().replace("127.0.0.1:9876", rocketmq.name_server_address).replace("/tmp/ten", str(tmp_path))
    names: dict[str, Any] = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), str(PAGE), "exec"), names)
    assert names["spark"] is spark
    of_queues = Counter(message.queue_id for message in rocketmq.messages("clicks"))
    assert of_queues == dict.fromkeys(range(8), 250)
    assert capsys.readouterr().out.count("|  250|") == 8
    assert len(rocketmq.messages("slow_clicks")) == 1000
    for line in re.findall(r"^skyrocket (pipeline .*)$", page, re.MULTILINE):
        ended = CliRunner().invoke(app, shlex.split(line))
        assert ended.exit_code == 0, ended.output
        assert "without Spark" in ended.output
    assert (tmp_path / "letters" / "runs.html").exists()
