"""An examination that is cut off leaves no question behind."""

import asyncio
import gc
import warnings
from typing import cast

import pytest

from skyrocket.client.admin.admin import Admin
from skyrocket.client.doctor.facts import GroupFacts
from skyrocket.client.doctor.gathering import Gatherer, Scope


class SilentAdmin:
    """Three name servers of which none ever answers."""

    def name_servers(self) -> list[str]:
        return ["192.0.2.1:9876", "192.0.2.2:9876", "192.0.2.3:9876"]

    async def cluster_at(self, _: str) -> None:
        await asyncio.sleep(3600)

    async def topic_offsets(self, _: str) -> None:
        await asyncio.sleep(3600)


@pytest.mark.parametrize("asked", ["all", "offsets"])
async def test_questions_that_were_never_asked_are_dropped_without_a_word(asked: str) -> None:
    gatherer = Gatherer(cast("Admin", SilentAdmin()), Scope(), at_once=1)
    nobody = {"Billing": GroupFacts("Billing")}
    topics = {"%RETRY%Billing": None, "%DLQ%Billing": None}
    gathering: asyncio.Task[object] = asyncio.create_task(
        gatherer.gather() if asked == "all" else gatherer._offsets(topics, nobody)
    )
    await asyncio.sleep(0.01)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gathering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gathering
        gc.collect()
    assert [str(each.message) for each in said] == []
