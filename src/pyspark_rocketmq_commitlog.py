"""Spark looks for top-level modules named `pyspark_*`: this one makes format("rocketmq-commitlog") known by itself."""

from skyrocket.pipeline.commit_log.data_source import CommitLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
