"""Whose groups are shown to people."""

import pytest

from skyrocket.broker.state.subscription_groups import PRESET_GROUPS
from skyrocket.model.system_groups import is_system_group


@pytest.mark.parametrize("name", [*PRESET_GROUPS, "CID_RMQ_SYS_REVIVE_GROUP", "CID_SYS_RMQ_TRANS"])
def test_what_brokers_of_both_makers_have_from_the_start_is_the_systems(name: str) -> None:
    assert is_system_group(name)


@pytest.mark.parametrize("name", ["billing", "CID_billing", "DEFAULT_CONSUMER", "my_TOOLS_CONSUMER"])
def test_what_applications_consume_with_is_theirs(name: str) -> None:
    assert not is_system_group(name)
