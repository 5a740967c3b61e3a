"""Sets of two brokers of ours and one of Apache's, master first: also two fail-overs go from maker to maker."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.failover.sets import APACHE, OURS, Makers
from tests.interop.failover.story import kill_masters_of_a_set

pytestmark = pytest.mark.interop

MAKERS = [Makers((APACHE, OURS, OURS), controller) for controller in (OURS, APACHE)]


@pytest.mark.requirement("D030")
@pytest.mark.timeout(600)
def test_two_masters_are_killed_under_load_and_nothing_acknowledged_is_lost(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    kill_masters_of_a_set(Makers((OURS, APACHE, OURS), OURS), tmp_path, apache_of_version(APACHE), times=2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("D030")
@pytest.mark.parametrize("makers", MAKERS, ids=str)
def test_masters_of_a_set_are_killed_under_load_and_nothing_acknowledged_is_lost(
    tmp_path: Path, makers: Makers, apache_of_version: Callable[[str], Apache]
) -> None:
    kill_masters_of_a_set(makers, tmp_path, apache_of_version(APACHE))
