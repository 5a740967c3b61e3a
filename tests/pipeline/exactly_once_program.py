"""A stream of files into a topic with deliveryGuarantee=exactly-once, to be killed at any moment.

python tests/pipeline/exactly_once_program.py NAME_SERVERS TOPIC INPUT CHECKPOINT
"""

import sys

from skyrocket.pipeline.session import session


def main(names: str, topic: str, source: str, checkpoint: str) -> None:
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        "spark.driver.memory": "1g",
    }
    spark = session("is killed", "local[2,4]", conf)
    spark.sparkContext.setLogLevel("OFF")
    query = (
        spark.readStream.option("maxFilesPerTrigger", "2")
        .text(source)
        .repartition(2)
        .writeStream.format("rocketmq")
        .option("namesrvAddr", names)
        .option("topic", topic)
        .option("deliveryGuarantee", "exactly-once")
        .option("maxBatchBytes", "1k")  # many requests, so that a kill meets some of them
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
