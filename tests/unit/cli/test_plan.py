"""Names, ports and stores of several brokers; directories that were used for another number of them."""

from pathlib import Path

import pytest

from skyrocket.cli.fleet.plan import Places, broker_name, plan_brokers
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError


def config(root: Path, port: int = 10911, name: str = "broker-a", ip: str = "") -> BrokerConfig:
    return BrokerConfig(store_root=str(root), listen_port=port, broker_name=name, broker_ip=ip)


def test_one_broker_has_the_plain_store(tmp_path: Path) -> None:
    (plan,) = plan_brokers(config(tmp_path), 1, None, [])
    assert (plan.name, plan.listen_port, plan.store) == ("broker-a", 10911, tmp_path)


def test_several_have_names_ports_and_stores_of_their_own(tmp_path: Path) -> None:
    plans = plan_brokers(config(tmp_path, ip="10.0.0.7"), 3, Path("b.conf"), ["traceOn=false"], verbose=True)
    assert [(plan.name, plan.listen_port, plan.store) for plan in plans] == [
        ("broker-a", 10911, tmp_path / "broker-0"),
        ("broker-b", 10921, tmp_path / "broker-1"),
        ("broker-c", 10931, tmp_path / "broker-2"),
    ]
    shared = ("-c", "b.conf", "-v", "--set", "traceOn=false", "--broker-ip", "10.0.0.7")
    own = ("--set", "brokerName=broker-b", "--listen-port", "10921", "--store", str(tmp_path / "broker-1"))
    kept = ("--set", f"brokerConfigPath={tmp_path / 'broker-1' / 'config' / 'broker.properties'}")
    assert plans[1].arguments == (*shared, *own, *kept, "--set", "metricsPromExporterPort=5567")


def test_a_free_port_stays_a_free_port(tmp_path: Path) -> None:
    assert [plan.listen_port for plan in plan_brokers(config(tmp_path, port=0), 2, None, [])] == [0, 0]


@pytest.mark.parametrize(("first", "names"), [("broker-a", ["broker-a", "broker-b"]), ("shop", ["shop-a", "shop-b"])])
def test_names_follow_the_first(first: str, names: list[str]) -> None:
    assert [broker_name(first, number) for number in range(2)] == names


@pytest.mark.parametrize(
    ("used", "count", "words"),
    [
        pytest.param(["commitlog"], 2, "is the store of one broker", id="one-then-two"),
        pytest.param(["broker-0/commitlog", "broker-1/commitlog"], 1, "Start with --brokers 2", id="two-then-one"),
        pytest.param(["broker-0/commitlog", "broker-2/commitlog"], 2, "Start with --brokers 3", id="three-then-two"),
    ],
)
def test_messages_are_not_left_behind_unseen(tmp_path: Path, used: list[str], count: int, words: str) -> None:
    for name in used:
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(ConfigError, match=words):
        plan_brokers(config(tmp_path), count, None, [])


def test_more_brokers_may_be_added(tmp_path: Path) -> None:
    (tmp_path / "broker-0" / "commitlog").mkdir(parents=True)
    (tmp_path / "broker-old" / "commitlog").mkdir(parents=True)  # somebody's own folder
    assert len(plan_brokers(config(tmp_path), 2, None, [])) == 2


def test_ports_end_at_65535(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="would need port 65540"):
        plan_brokers(config(tmp_path, port=65530), 2, None, [])


def test_replicas_are_slaves_with_ports_behind_all_masters(tmp_path: Path) -> None:
    plans = plan_brokers(config(tmp_path), 2, None, ["brokerRole=ASYNC_MASTER"], replicas=2)
    assert [(plan.label, plan.listen_port, plan.store.name) for plan in plans] == [
        ("broker-a", 10911, "broker-0"),
        ("broker-b", 10921, "broker-1"),
        ("broker-a slave 1", 10931, "broker-0-s1"),
        ("broker-b slave 1", 10941, "broker-1-s1"),
    ]
    roles = [[text for text in plan.arguments if text.startswith("brokerRole=")] for plan in plans]
    assert roles[0] == ["brokerRole=SYNC_MASTER", "brokerRole=ASYNC_MASTER"]  # the user's word is the last
    assert roles[3][-1] == "brokerRole=SLAVE"


def test_a_broker_with_slaves_is_not_started_as_one_without(tmp_path: Path) -> None:
    (tmp_path / "broker-0" / "commitlog").mkdir(parents=True)
    assert len(plan_brokers(config(tmp_path), 1, None, [], replicas=2)) == 2
    with pytest.raises(ConfigError, match="Start with --replicas 2"):
        plan_brokers(config(tmp_path), 1, None, [])
    (tmp_path / "commitlog").mkdir()
    with pytest.raises(ConfigError, match="with --replicas 2 its messages would not be served"):
        plan_brokers(config(tmp_path), 1, None, [], replicas=2)


@pytest.mark.parametrize(("replicas", "least"), [(2, 1), (3, 2)])
def test_with_failover_nobody_has_a_role_and_the_loss_of_one_stops_no_writes(
    tmp_path: Path, replicas: int, least: int
) -> None:
    plans = plan_brokers(config(tmp_path), 1, None, ["brokerHeartbeatInterval=200"], replicas=replicas, failover=True)
    assert [plan.label for plan in plans] == [f"broker-a replica {number + 1}" for number in range(replicas)]
    for plan in plans:
        settings = dict(text.split("=", 1) for text in plan.arguments if "=" in text)  # the last word counts
        assert settings["enableControllerMode"] == settings["allAckInSyncStateSet"] == "true"
        assert settings["minInSyncReplicas"] == str(least)
        assert settings["brokerHeartbeatInterval"] == "200"
        assert not {"brokerId", "brokerRole"} & settings.keys()


def test_a_set_of_a_controller_is_not_started_without_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="add --replicas 3"):
        plan_brokers(config(tmp_path), 1, None, [], failover=True)
    (tmp_path / "broker-0-s1").mkdir()
    (tmp_path / "broker-0-s1" / "brokerIdentity").touch()
    with pytest.raises(ConfigError, match="Start with --replicas 3 --failover"):
        plan_brokers(config(tmp_path), 1, None, [], replicas=3)
    assert len(plan_brokers(config(tmp_path), 1, None, [], replicas=3, failover=True)) == 3


def test_brokers_are_told_where_the_others_are() -> None:
    assert Places("").arguments == ()
    assert Places("h:9876", "h:9878").arguments == ("--namesrv-addr", "h:9876", "--set", "controllerAddr=h:9878")
