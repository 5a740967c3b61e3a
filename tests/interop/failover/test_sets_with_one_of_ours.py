"""Sets of one broker of ours, which is master first, and two of Apache's; and pairs of one and one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.failover.loads import OurLoad
from tests.interop.failover.sets import APACHE, OURS, Makers, failover_set
from tests.interop.failover.story import fail_over, kill_masters_of_a_set

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

MAKERS = [Makers((OURS, APACHE, APACHE), controller) for controller in (OURS, APACHE)]
PAIRS = [Makers(brokers, OURS) for brokers in ((APACHE, OURS), (OURS, APACHE))]


@pytest.mark.requirement("D030")
@pytest.mark.parametrize("makers", MAKERS, ids=str)
def test_masters_of_a_set_are_killed_under_load_and_nothing_acknowledged_is_lost(
    tmp_path: Path, makers: Makers, apache_of_version: Callable[[str], Apache]
) -> None:
    kill_masters_of_a_set(makers, tmp_path, apache_of_version(APACHE))


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
