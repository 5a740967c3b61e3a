"""Which word of the controllers counts, and what a replica keeps in its files."""

from pathlib import Path

import pytest

from skyrocket.broker.failover.controllers import Controllers, NoController
from skyrocket.broker.failover.replica_files import IdentityFiles, load_epochs
from skyrocket.broker.failover.role_book import RoleBook
from skyrocket.broker.state.switching import RoleWord
from skyrocket.errors import ConfigError, CorruptFile
from skyrocket.format.epochs import Epoch
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.controller import GetControllerMetadata, GetControllerMetadataAnswer
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.remoting.serving import serve
from skyrocket.store.disk import Disk


def word(master: int | None, epoch: int, members_epoch: int = 0) -> RoleWord:
    address = None if master is None else f"10.0.0.{master}:10911"
    return RoleWord(master, address, epoch, frozenset({master or 0}), members_epoch)


def test_who_starts_is_nothing_until_a_controller_has_spoken() -> None:
    book = RoleBook()
    book.own_id = 1
    assert not book.is_master
    assert book.hear(word(1, 1))
    assert book.is_master


def test_an_older_word_counts_for_nothing_and_the_same_is_not_new() -> None:
    book = RoleBook()
    book.own_id = 1
    assert book.hear(word(2, 5, 7))
    assert not book.hear(word(1, 4, 9))
    assert not book.hear(word(2, 5, 7))
    assert not book.is_master


def test_another_set_in_the_same_epoch_is_new() -> None:
    book = RoleBook()
    assert book.hear(word(2, 5, 7))
    assert book.hear(word(2, 5, 8))
    assert book.role is not None
    assert book.role.members_epoch == 8


def test_a_set_without_a_master_changes_nothing() -> None:
    book = RoleBook()
    assert book.hear(word(2, 5))
    assert not book.hear(word(None, 6))
    assert book.role == word(2, 5)


def test_an_id_is_asked_for_confirmed_and_found_again(tmp_path: Path) -> None:
    files = IdentityFiles(Disk(), str(tmp_path), "DefaultCluster", "broker-a")
    assert files.load() is None
    asked = files.ask(3, "10.0.0.1:10911;1700000000000")
    assert files.load() == asked
    assert files.confirm(asked).broker_id == 3
    assert (tmp_path / "brokerIdentity").read_text() == "DefaultCluster#broker-a#3"
    assert not (tmp_path / "brokerIdentity-temp").exists()
    found = files.load()
    assert found is not None
    assert not found.check_code


def test_a_store_of_another_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "brokerIdentity").write_text("DefaultCluster#broker-a#3")
    with pytest.raises(ConfigError, match="broker broker-a of cluster DefaultCluster, but"):
        IdentityFiles(Disk(), str(tmp_path), "DefaultCluster", "broker-b").load()
    (tmp_path / "brokerIdentity").write_text("nonsense")
    with pytest.raises(CorruptFile, match="brokerIdentity"):
        IdentityFiles(Disk(), str(tmp_path), "DefaultCluster", "broker-a").load()


def test_epochs_survive_in_rocketmqs_file(tmp_path: Path) -> None:
    epochs = load_epochs(Disk(), str(tmp_path))
    epochs.begin(7, 7000)
    epochs.begin(8, 8000)
    assert (tmp_path / "epochFileCheckpoint").read_bytes() == b"2\n773307083\n7-7000\n8-8000\n"
    assert load_epochs(Disk(), str(tmp_path)).all == (Epoch(7, 7000), Epoch(8, 8000))
    (tmp_path / "epochFileCheckpoint").write_bytes(b"torn")
    assert load_epochs(Disk(), str(tmp_path)).all == (Epoch(7, 7000),), "as of before the last change"


class _Controller:
    """Names a leader."""

    def __init__(self, leader: str) -> None:
        self.leader = leader

    def metadata(self, _: Peer, __: GetControllerMetadata, ___: Body) -> GetControllerMetadataAnswer:
        return GetControllerMetadataAnswer(controller_leader_address=self.leader)


async def test_most_controllers_know_who_leads() -> None:
    named = [_Controller("127.0.0.1:1"), _Controller("127.0.0.1:2"), _Controller("127.0.0.1:2")]
    servers = []
    for each in named:
        router = Router()
        router.add(serve(GetControllerMetadata, each.metadata))
        servers.append(RemotingServer(router))
    async with servers[0] as one, servers[1] as two, servers[2] as three, RemotingClient() as client:
        addresses = [str(await server.listen("127.0.0.1", 0)) for server in (one, two, three)]
        controllers = Controllers(client, addresses)
        await controllers.find_leader()
        assert controllers.leader == "127.0.0.1:2"
        for each in named:
            each.leader = ""
        with pytest.raises(NoController, match="none of these controllers says which one leads"):
            await controllers.find_leader()
