"""A copy of the store of a broker that runs is a backup: docs/guides/backup-and-restore.md."""

import asyncio
import shutil
from pathlib import Path

from tests.cluster.broker.broker_fixture import TOPIC, running_broker


async def test_a_copy_of_a_store_in_use_has_all_that_was_confirmed_before(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "first") as given:
        for number in range(50):
            await given.send(b"%d" % number)
        copying = asyncio.create_task(
            asyncio.to_thread(shutil.copytree, tmp_path / "first" / "store", tmp_path / "second" / "store")
        )
        while not copying.done():
            await given.send(b"while it is copied")
        await copying
        sent = given.broker.store.max_offset(TOPIC, 0)
    async with running_broker(tmp_path / "second") as restored:
        assert 50 <= restored.broker.store.max_offset(TOPIC, 0) <= sent
        await restored.send(b"and it goes on")
