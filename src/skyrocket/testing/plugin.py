"""pytest's fixtures: found by themselves when Skyrocket is installed; nothing is loaded until a test asks for one.

def test_an_order_is_paid(rocketmq):               a cluster of its own
def test_many_orders(rocketmq_session):            one cluster for the whole run: use unique_topic()

@pytest.mark.rocketmq(brokers=2, settings={"autoCreateTopicEnable": False})       what LocalCluster takes
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skyrocket.testing.local_cluster import LocalCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "rocketmq(brokers=1, replicas=1, failover=False, settings=None): how the cluster of `rocketmq` is built",
    )


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> "Iterator[LocalCluster]":
    """A fresh RocketMQ cluster for this test; `@pytest.mark.rocketmq(...)` says how it is built."""
    from skyrocket.testing.local_cluster import LocalCluster

    marker = request.node.get_closest_marker("rocketmq")
    with LocalCluster(**(marker.kwargs if marker is not None else {})) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def rocketmq_session() -> "Iterator[LocalCluster]":
    """One RocketMQ cluster for all tests of the run; `unique_topic()` and `unique_group()` keep them apart."""
    from skyrocket.testing.local_cluster import LocalCluster

    with LocalCluster() as cluster:
        yield cluster
