"""A driver of its own: a topic into Parquet, until it is killed or (with `now`) everything is there.

python -m tests.pipeline.stream_to_parquet <name server> <topic> <folder> forever|now
"""

import os
import sys
from pathlib import Path

from skyrocket.pipeline import read_stream, session
from tests.pipeline.conftest import FAST, JVM_FLAGS


def main(name_server: str, topic: str, folder: str, until: str) -> None:
    """Small batches, so that a kill comes in the middle of something."""
    os.environ["SPARK_SUBMIT_OPTS"] = JVM_FLAGS
    spark = session(
        "stream to parquet",
        "local[2,4]",  # a killed worker costs an attempt of its task
        FAST | {"spark.local.dir": str(Path(folder) / "local")},
    )
    checkpoint = str(Path(folder) / "checkpoint")
    stream = read_stream(
        spark,
        checkpoint=checkpoint,
        namesrvAddr=name_server,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=100 if until == "forever" else None,
        brokerAbsenceMs=120_000,
    )
    writer = stream.select("queueId", "queueOffset", "brokerName", "body").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", checkpoint)
    if until == "now":
        writer = writer.trigger(availableNow=True)
    writer.start(str(Path(folder) / "lake")).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
