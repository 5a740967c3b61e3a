"""One run on two cores: every rate beside the floor, and beside the figures of the design.

    python -m bench.pipeline [--messages 2000000] [--body 256] [--times 3] [--only decoder,source,rebuild,…]

    python -m bench.pipeline --peers                            format("rocketmq") beside Spark's own format("kafka")

What needs a server has programs of its own, bench.pipeline.stream_source and bench.pipeline.sink. The floor is measured
in the same run: trust ratios, not rates. The decoder is one thread and counted in processor time,
what runs in Spark by the clock, with two tasks.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.pipeline import archive, commit_log, decoder, transport
from bench.pipeline.logs import LogShape, write_log
from bench.pipeline.measure import Rate, show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PEER_MESSAGES = 400_000
SparkPart = Callable[["SparkSession", Path, LogShape, int, int], list[Rate]]

# A part gets the session, a store with a log of one shape, that shape, the bytes of its records, and how often to try.
SPARK_PARTS: dict[str, SparkPart] = {
    "control": transport.transport,
    "source": commit_log.source,
    "rebuild": commit_log.rebuilding,
    "archive": archive.archiving,
}


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    if arguments.peers:
        from bench.pipeline import peers

        peers.main(min(arguments.messages, _PEER_MESSAGES), arguments.body, arguments.times)
        return
    shape = LogShape(arguments.messages, arguments.body)
    only = set(arguments.only.split(",")) if arguments.only else {"decoder", *SPARK_PARTS}
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as directory:
        store = Path(directory) / "store"
        log_bytes = write_log(store, shape)
        path = sorted((store / "commitlog").iterdir())[0]
        print(f"{shape.messages:,} messages, {log_bytes / shape.messages:.0f} bytes each, {log_bytes >> 20} MiB of log")
        cpu_floor, clock_floor = decoder.floor(path, shape, log_bytes, arguments.times)
        if "decoder" in only:
            show(cpu_floor, decoder.decoder(path, shape, log_bytes, arguments.times))
        wanted = [part for name, part in SPARK_PARTS.items() if name in only]
        if wanted:
            show(clock_floor, _in_spark(wanted, store, shape, log_bytes, arguments.times))


def _in_spark(parts: list[SparkPart], store: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    from skyrocket.pipeline import session

    spark = session("bench", "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "2g"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return [rate for part in parts for rate in part(spark, store, shape, log_bytes, times)]
    finally:
        spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000, help="they must fit into one log file of 1 GiB")
    parser.add_argument("--body", type=int, default=256, help="bytes of a body")
    parser.add_argument("--times", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--peers", action="store_true", help="our source beside Spark's own for Kafka, at most 400,000")
    parser.add_argument("--only", default="", help="parts, with commas: decoder, " + ", ".join(SPARK_PARTS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
