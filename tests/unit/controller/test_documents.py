"""Replica sets at rest: their documents, and the file that keeps them for one controller."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.controller.engines.engine import Document, EngineUnavailable, Member, Overtaken, Standing
from skyrocket.controller.engines.file import FileEngine, FileInUse
from skyrocket.controller.replica_set import Replica, ReplicaSet, UnreadableDocument, decode, encode
from skyrocket.errors import CorruptFile
from skyrocket.store.disk import Disk

ME = Member("n0", "127.0.0.1:9878")
SET = ReplicaSet("c", "broker-a", {1: Replica("a:1", "a:1;7")}, 2, 1, 3, frozenset({1}), 4)


def test_a_document_is_plain_json() -> None:
    assert encode(SET) == (
        b'{"cluster":"c","format":1,"inSync":[1],"master":1,"masterEpoch":3,"name":"broker-a","nextBrokerId":2,'
        b'"replicas":{"1":{"address":"a:1","checkCode":"a:1;7"}},"syncEpoch":4}'
    )
    assert decode(encode(SET)) == SET


@given(st.binary(max_size=80) | st.text().map(lambda text: encode(SET).replace(b"1", text.encode()[:3])))
def test_bytes_that_are_no_document_are_refused(content: bytes) -> None:
    try:
        found = decode(content)
    except UnreadableDocument:
        return
    assert decode(encode(found)) == found


@pytest.mark.parametrize(
    "wrong", [(b'"master":1', b'"master":2'), (b"[1]", b"[2]"), (b'"format":1', b'"format":2'), (b"3", b"-3")]
)
def test_a_document_that_contradicts_itself_is_refused(wrong: tuple[bytes, bytes]) -> None:
    with pytest.raises(UnreadableDocument):
        decode(encode(SET).replace(*wrong))


class Heard:
    """What an engine told."""

    def __init__(self) -> None:
        self.standings: list[Standing] = []

    @property
    def leadership(self) -> int:
        number = self.standings[-1].leadership
        assert number is not None
        return number


async def joined(path: Path) -> tuple[FileEngine, Heard]:
    engine, heard = FileEngine(Disk(), str(path)), Heard()
    await engine.join(ME, heard.standings.append)
    return engine, heard


async def test_what_was_written_is_there_after_a_restart_under_a_larger_number(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state"
    engine, heard = await joined(path)
    assert heard.standings == [Standing(1, ME, (ME,))]
    first = await engine.write(1, "a", b"one", None)
    assert await engine.write(1, "a", b"two", first) == 2
    await engine.write(1, "b", b"gone", None)
    assert await engine.write(1, "b", None, 1) is None
    await engine.close()
    engine, heard = await joined(path)
    assert heard.leadership == 2
    assert await engine.documents() == {"a": Document(b"two", 2)}
    await engine.close()


async def test_a_write_on_another_version_or_leadership_changes_nothing(tmp_path: Path) -> None:
    engine, _ = await joined(tmp_path / "state")
    await engine.write(1, "a", b"one", None)
    for leadership, version in ((1, None), (1, 2), (0, 1), (2, 1)):
        with pytest.raises(Overtaken):
            await engine.write(leadership, "a", b"x", version)
    assert await engine.documents() == {"a": Document(b"one", 1)}
    await engine.close()


async def test_one_file_serves_one_controller(tmp_path: Path) -> None:
    engine, _ = await joined(tmp_path / "state")
    with pytest.raises(FileInUse, match="ZooKeeper or etcd"):
        await joined(tmp_path / "state")
    await engine.close()
    engine, _ = await joined(tmp_path / "state")
    await engine.close()


async def test_a_damaged_file_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    engine, _ = await joined(path)
    await engine.write(1, "a", b"one", None)
    await engine.close()
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(CorruptFile, match="epochs"):
            FileEngine(Disk(), str(path))._load()
    path.write_bytes(whole)
    engine, _ = await joined(path)
    await engine.close()


class FailingDisk(Disk):
    """Fails before or after a file was replaced."""

    fails_before = False
    fails_after = False

    def replace_file(self, path: str, data: bytes) -> None:
        if self.fails_before:
            raise OSError(28, "No space left on device")
        super().replace_file(path, data)
        if self.fails_after:
            raise OSError(5, "Input/output error")


@pytest.mark.parametrize("failure", ["fails_before", "fails_after"])
async def test_after_a_failed_write_the_file_says_what_is_true(tmp_path: Path, failure: str) -> None:
    disk, heard = FailingDisk(), Heard()
    engine = FileEngine(disk, str(tmp_path / "state"))
    await engine.join(ME, heard.standings.append)
    await engine.write(1, "a", b"one", None)
    setattr(disk, failure, True)
    with pytest.raises(EngineUnavailable):
        await engine.write(1, "a", b"two", 1)
    setattr(disk, failure, False)
    expected = Document(b"one", 1) if failure == "fails_before" else Document(b"two", 2)
    assert await engine.documents() == {"a": expected}
    assert await engine.write(1, "a", b"three", expected.version) == expected.version + 1
    await engine.close()


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineUnavailable, match="controllerStore=file:"):
        await joined(tmp_path / "file" / "state")
    await asyncio.sleep(0)
