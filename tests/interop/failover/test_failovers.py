"""Sets of three under our controller and Apache's: masters are killed while Java's producer and ours send.

At the end nothing acknowledged is missing, each queue is in order, and all three logs are the same byte by byte. How
often: FAILOVERS, 50 unless it says otherwise; with `-o log_cli=true -o log_cli_level=INFO` it tells what happens.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.failover.loads import JavaLoad, OurLoad
from tests.interop.failover.sets import APACHE, OURS, Makers, failover_set
from tests.interop.failover.story import fail_over

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

TIMES = int(os.environ.get("FAILOVERS") or 50)
# The first is the first master: also two fail-overs go from one maker to the other.
SETS = ((OURS, OURS, OURS), (APACHE, OURS, OURS), (OURS, APACHE, APACHE))
MAKERS = [Makers(brokers, controller) for brokers in SETS for controller in (OURS, APACHE)]


PAIRS = [Makers(brokers, OURS) for brokers in ((APACHE, OURS), (OURS, APACHE))]


@pytest.mark.requirement("D030")
@pytest.mark.parametrize("makers", MAKERS, ids=str)
def test_masters_of_a_set_are_killed_under_load_and_nothing_acknowledged_is_lost(
    tmp_path: Path, makers: Makers, apache_of_version: Callable[[str], Apache]
) -> None:
    apache = apache_of_version(APACHE)
    with failover_set(makers, tmp_path, apache) as replicas:
        replicas.create_topics(OurLoad.topic, JavaLoad.topic)
        with OurLoad(replicas.names) as ours, JavaLoad(apache, tmp_path, replicas.names) as javas:
            fail_over(replicas, [ours, javas], TIMES)
            replicas.check([ours, javas])


@pytest.mark.parametrize("makers", PAIRS, ids=str)
def test_each_maker_takes_over_from_the_other_in_a_pair(
    tmp_path: Path, makers: Makers, apache_of_version: Callable[[str], Apache]
) -> None:
    apache = apache_of_version(APACHE)
    with failover_set(makers, tmp_path, apache, broker_settings={"minInSyncReplicas": 1}) as replicas:
        replicas.create_topics(OurLoad.topic)
        with OurLoad(replicas.names) as ours:
            fail_over(replicas, [ours], 2)
            replicas.check([ours])
