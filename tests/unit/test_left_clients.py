"""Who stops no client is found out."""

import asyncio

from skyrocket.client import blocking
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.pipeline.topic_source.connection import connected, run
from tests.left_clients import description_of, end_those_of_the_process, running_clients

NOBODY = "127.0.0.1:1"


def test_a_client_in_the_thread_of_the_blocking_ones_is_seen_until_it_is_stopped() -> None:
    before = running_clients()
    producer = blocking.Producer("Shop", NOBODY)
    producer.start()
    (left,) = running_clients() - before
    assert NOBODY in description_of(left)
    assert "Shop" in description_of(left)
    producer.stop()
    assert running_clients() == before


def test_what_spark_keeps_for_the_process_ends_with_the_test() -> None:
    before = running_clients()

    async def twice() -> None:
        await asyncio.gather(connected(Cluster(NOBODY)), connected(Cluster(NOBODY)))

    run(twice())
    assert len(running_clients() - before) == 1
    end_those_of_the_process()
    assert running_clients() == before
