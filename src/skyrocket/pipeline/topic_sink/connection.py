"""A task's way to the brokers: one producer per cluster, which stays in the worker process for the tasks that follow.

Spark uses its Python workers again, so the second micro-batch finds connections and routes warm. Everything here is
opened inside a worker; nothing of it travels. A worker is ended by its Spark, so nobody says goodbye.
"""

import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from skyrocket.client.core.settings import DEFAULT_INSTANCE
from skyrocket.client.exactly_once.read_back import ReadBackProducer
from skyrocket.errors import ConfigError
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.pipeline.topic_source.connection import submit

T = TypeVar("T")


class SinkClient:
    """A running producer, for code without an event loop."""

    def __init__(self, settings: SinkSettings) -> None:
        try:
            client = settings.cluster.client_settings(DEFAULT_INSTANCE)
        except OSError as error:
            raise ConfigError(f"the TLS options name files that cannot be used: {error}") from error
        self.producer = ReadBackProducer(settings.producer_group, settings=settings.producer(), client=client)
        self.producer.reader_group = settings.consumer_group
        self.run(self.producer.start())

    def close(self) -> None:
        """Leave the cluster; for whoever ends before his process does."""
        self.run(self.producer.stop())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the process's event loop and wait; what is run has its own bounds of time."""
        future = submit(work)
        try:
            return future.result()
        except BaseException:  # also when Spark kills the task
            future.cancel()
            raise


_open: dict[tuple[Cluster, str, str, int], SinkClient] = {}
os.register_at_fork(after_in_child=_open.clear)


def connection(settings: SinkSettings) -> SinkClient:
    """The process's connection for these settings."""
    key = (settings.cluster, settings.producer_group, settings.consumer_group, settings.max_message_size)
    if key not in _open:
        _open[key] = SinkClient(settings)
    return _open[key]


def close_connections() -> None:
    """Leave all clusters; for whoever ends before his process does."""
    while _open:
        _open.popitem()[1].close()
