"""Spark looks for top-level modules named `pyspark_*`: this one makes format("rocketmq") known by itself."""

from skyrocket.pipeline.topic_source.data_source import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
