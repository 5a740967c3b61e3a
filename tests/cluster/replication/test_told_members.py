"""A name server tells the members of a set that another one has the smallest id; who never asks acts on it at once."""

from dataclasses import replace
from pathlib import Path

from skyrocket.config.sections import NameServerConfig
from tests.cluster.replication.two_sets import CONFIG, two_sets
from tests.waiting import until

ASKS_NEVER = replace(CONFIG, member_look_period_ms=3_600_000, register_period_ms=60_000)
TELLS = NameServerConfig(support_acting_master=True, notify_min_broker_id=True)


async def test_a_slave_acts_and_stops_to_act_when_the_name_server_says_who_is_there(tmp_path: Path) -> None:
    async with two_sets(tmp_path, ASKS_NEVER, name_server=TELLS) as sets:
        await sets.lose_master()
        await sets.start("a")
        await until(lambda: not sets.acts)
