"""One of two name servers is down: mqadmin does it at the other, and names the one that it could not tell."""

import pytest

from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, at, skyrocket
from tests.ports import free_port


@pytest.fixture
def dead() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_topic_is_deleted_at_the_one_that_lives(rocketmq: LocalCluster, dead: str, is_first: bool) -> None:
    rocketmq.create_topic("Orders", queues=1)
    done = _both(rocketmq, dead, is_first, "deleteTopic -t Orders -c DefaultCluster")
    assert done.code == 3, done
    assert dead in done.errors
    assert skyrocket(rocketmq, "mqadmin", "topicRoute", "-t", "Orders").code == 4


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("getNamesrvConfig", "============{alive}============"),
        ("updateNamesrvConfig -k orderMessageEnable -v true", "update name server config success![{alive}]"),
        ("updateKvConfig -s Space -k key -v value", "create or update kv config to namespace success."),
        ("deleteKvConfig -s Space -k key", "delete kv config from namespace success."),
        ("wipeWritePerm -b broker-a", "name server[{alive}] OK"),
        ("addWritePerm -b broker-a", "name server[{alive}] OK"),
    ],
)
def test_what_all_are_told_is_told_to_the_one_that_lives(
    rocketmq: LocalCluster, dead: str, command: str, shown: str
) -> None:
    done = _both(rocketmq, dead, True, command)
    assert done.code == 3, done
    assert shown.format(alive=rocketmq.name_server_address) in done.output
    assert dead in done.errors


@pytest.mark.parametrize("is_first", [True, False])
def test_what_one_answers_is_asked_of_the_one_that_lives(rocketmq: LocalCluster, dead: str, is_first: bool) -> None:
    done = _both(rocketmq, dead, is_first, "topicList")
    assert done.code == 0, done
    assert "TBW102" in done.output


def _both(rocketmq: LocalCluster, dead: str, is_first: bool, command: str) -> Done:
    names = [dead, rocketmq.name_server_address]
    return at(";".join(names if is_first else names[::-1]), "mqadmin", *command.split())
