"""The examples of docs/guides/spark-source-and-sink.md about reading run as they stand."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyrocket.client import Message
from skyrocket.pipeline.topic_source.settings import OPTIONS
from skyrocket.testing import LocalCluster
from tests import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "guides" / "spark-source-and-sink.md"


def reading_part() -> str:
    return PAGE.read_text().partition("\n## Writing")[0]


def test_the_examples_run(spark: "SparkSession", rocketmq: LocalCluster, tmp_path: Path) -> None:
    rocketmq.create_topic("orders")
    with rocketmq.producer() as producer:
        for number in range(10):
            producer.send(Message("orders", b"%d" % number, tags="paid" if number % 2 else "refunded"))
    blocks = re.findall(r"```python\n(.*?)```", reading_part(), re.DOTALL)
    assert len(blocks) >= 4
    text = "\n".join(blocks).replace("127.0.0.1:9876", rocketmq.name_server_address).replace("/tmp/", f"{tmp_path}/")
    names: dict[str, Any] = {}
    exec(compile(text, str(PAGE), "exec"), names)
    assert names["spark"] is spark
    assert names["paid"].count() == 5
    assert names["sizes"].count() == 10
    names["query"].processAllAvailable()
    names["query"].stop()


def test_every_option_is_in_the_table() -> None:
    table = {
        name
        for line in reading_part().splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w.]+)`", line.split("|")[1])
    }
    assert table == set(OPTIONS)
