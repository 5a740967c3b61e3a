"""A driver of its own: a topic into Parquet, until it is killed or (with `now`) everything is there.

python -m tests.pipeline.stream_to_parquet <name server> <topic> <folder or URI> forever|now [JSON of Spark's settings]
"""

import json
import os
import sys

from skyrocket.pipeline import read_stream, session
from tests.pipeline.conftest import FAST, JVM_FLAGS


def main(name_server: str, topic: str, place: str, until: str, conf: str = "{}") -> None:
    """Small batches, so that a kill comes in the middle of something."""
    os.environ["SPARK_SUBMIT_OPTS"] = JVM_FLAGS
    spark = session(
        "stream to parquet",
        "local[2,4]",  # a killed worker costs an attempt of its task
        FAST | json.loads(conf),
    )
    checkpoint = f"{place}/checkpoint"
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
    writer.start(f"{place}/lake").awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
