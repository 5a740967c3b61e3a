"""Our nouns and verbs in front of Apache RocketMQ: each does there what it does at ours, or says why it cannot.

Both servers live as long as the file; each test has topics and groups of its own.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import ClientSettings, ConsumeFromWhere, Message, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.config.sections import StoreConfig
from skyrocket.format.recall_handle import RecallHandle
from tests.cluster.command_line import Done, at
from tests.interop.apache import Apache
from tests.interop.controller_mode import BROKER, CLUSTER, apache_replicas
from tests.interop.failover.sets import apaches_controller
from tests.interop.rocketmq_broker import running_broker
from tests.interop.test_replication_pairs import our_name_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(240)]

_AUTH = "org.apache.rocketmq.auth"
# Users are kept, and nobody is asked who he is: so all verbs can be tried at one broker.
_KEEPS_USERS = {
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
}
NEWER = "it came with a newer release than that broker's"
OURS_ALONE = "only Skyrocket's brokers know it"


class Rocket:
    """A name server and a broker of Apache's, asked with our commands."""

    def __init__(self, version: str, names: str) -> None:
        self.is_old = version.startswith("4.")
        self.names = names

    def run(self, *arguments: str) -> Done:
        return at(self.names, *arguments)

    def well(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.code == 0, f"{arguments}: {done.errors}"
        return done.output

    def rows(self, *arguments: str) -> Any:
        return json.loads(self.well(*arguments, "--output", "json"))

    def refused(self, *arguments: str, code: int = 1) -> str:
        """What a command that must fail says, on one line."""
        done = self.run(*arguments)
        assert done.code == code, f"{arguments}: {done.code} {done.output} {done.errors}"
        return " ".join(done.errors.split())

    def topic(self, name: str, queues: int = 2) -> str:
        self.well("topic", "create", name, "--queues", str(queues))
        wait_until(lambda: self.run("topic", "route", name).code == 0, f"name servers know {name}")
        return name

    def send_three(self, topic: str) -> list[dict[str, Any]]:
        """What `msg find` shows of three messages: Java's broker makes its index after its answer."""
        self.well("msg", "send", topic, "0", "1", "2", "--tags", "paid", "--key", "o-1")
        wait_until(lambda: len(self._found(topic)) == 3, "three messages are in the index")
        found = self._found(topic)
        return sorted(found, key=lambda row: str(row["body"]))

    def _found(self, topic: str) -> list[dict[str, Any]]:
        done = self.run("msg", "find", topic, "o-1", "--output", "json")
        return json.loads(done.output) if done.code == 0 else []


@pytest.fixture(scope="module", params=["5.4.0", "4.9.7"])
def rocket(
    request: pytest.FixtureRequest,
    apache_of_version: Callable[[str], Apache],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Rocket]:
    home = tmp_path_factory.mktemp("nouns")
    apache = apache_of_version(request.param)
    settings: dict[str, str] = {}
    if not request.param.startswith("4."):
        settings = {**_KEEPS_USERS, "authConfigPath": str(home / "auth"), "recallMessageEnable": "true"}
    with running_broker(apache, home / "store", StoreConfig(), settings) as server:
        rocket = Rocket(request.param, server.name_server)
        wait_until(lambda: rocket.run("broker", "status", "broker-a").code == 0, "the broker is known")
        yield rocket


def test_topics_are_created_shown_changed_and_deleted(rocket: Rocket) -> None:
    assert "topic Shop is created at 1 broker" in rocket.well("topic", "create", "Shop", "--queues", "3")
    wait_until(lambda: rocket.run("topic", "route", "Shop").code == 0)
    assert "is there already" in rocket.refused("topic", "create", "Shop", code=2)
    (row,) = rocket.rows("topic", "list", "Sho*")
    assert (row["topic"], row["readQueues"], row["writeQueues"], row["permission"]) == ("Shop", 3, 3, "RW")
    assert "TBW102" in [each["topic"] for each in rocket.rows("topic", "list", "--all")]
    assert "permission  6 → 4" in rocket.well("topic", "update", "Shop", "--perm", "R")
    assert rocket.rows("topic", "list", "Shop")[0]["permission"] == "R"
    rocket.well("topic", "update", "Shop", "--perm", "RW")
    rocket.send_three("Shop")
    described = rocket.rows("topic", "describe", "Shop")
    assert (described["messages"], len(described["queues"])) == (3, 3)
    assert sum(each["messages"] for each in rocket.rows("topic", "status", "Shop")) == 3
    (route,) = rocket.rows("topic", "route", "Shop")
    assert (route["broker"], route["readQueues"]) == ("broker-a", 3)
    assert "Shop" in [each["topic"] for each in rocket.rows("cluster", "topics", "DefaultCluster")]
    assert "3 messages" in rocket.refused("topic", "delete", "Shop", code=2)
    assert "topic Shop is deleted" in rocket.well("topic", "delete", "Shop", "--yes")
    assert "there is no topic Shop" in rocket.refused("topic", "describe", "Shop", code=4)
    assert "files  kept → removed" in rocket.well("topic", "clean")


def test_topics_and_groups_are_paused_resumed_and_copied(rocket: Rocket) -> None:
    topic = rocket.topic("Paused")
    rocket.well("group", "create", "Waiting")
    rocket.send_three(topic)
    assert "permission  6 → 2" in rocket.well("topic", "pause", topic, "--yes")
    wait_until(lambda: rocket.rows("topic", "route", topic)[0]["permission"] == "W")
    assert "permission  2 → 6" in rocket.well("topic", "resume", topic)
    rocket.well("topic", "copy", topic, "PausedToo")
    (row,) = rocket.rows("topic", "list", "PausedToo")
    assert (row["readQueues"], row["permission"]) == (2, "RW")
    reading = ("Waiting", "--topic", topic)
    if rocket.is_old:
        assert NEWER in rocket.refused("group", "pause", *reading, "--yes")
    else:
        rocket.well("group", "pause", *reading, "--yes")
        rocket.well("group", "resume", *reading)
    wait_until(lambda: len(rocket.rows("topic", "status", topic)) == 2)
    rocket.well("reset", "--group", "Waiting", "--topic", topic, "--to", "1", "--yes")
    offsets = [row["consumerOffset"] for row in rocket.rows("group", "lag", "Waiting", "--topic", topic)]
    assert offsets == [1, 1], "three messages in two queues"


def test_a_group_that_runs_is_moved_to_an_offset_or_left_where_it_is(rocket: Rocket) -> None:
    topic = rocket.topic("Moved")
    rocket.send_three(topic)
    got: list[tuple[int, int]] = []
    settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = blocking.PushConsumer("Movers", client=ClientSettings(rocket.names), settings=settings)
    consumer.on(topic)(lambda message: got.append((message.queue_offset, message.queue_id)))
    which = ("reset", "--group", "Movers", "--topic", topic, "--to", "1", "--yes")
    with consumer:
        wait_until(lambda: len(got) == 3)
        wait_until(lambda: sum(row["lag"] for row in rocket.rows("group", "lag", "Movers", "--topic", topic)) == 0)
        if rocket.is_old:  # it knows no reset of one queue, and would send all of them to their beginning
            assert "stop the clients of Movers first" in " ".join(rocket.refused(*which).split())
        else:
            rocket.well(*which)
            wait_until(lambda: len(got) == 4)
    assert sorted(got)[:2] == [(0, 0), (0, 1)], "the first messages of queues came"
    assert sorted(got)[2][0] == 1, "and do not come again"
    assert len(got) == (3 if rocket.is_old else 4)


def test_brokers_and_clusters_are_listed_and_kept_in_order(rocket: Rocket) -> None:
    (row,) = rocket.rows("broker", "list")
    assert (row["broker"], row["role"], row["cluster"]) == ("broker-a", "master", "DefaultCluster")
    assert row["version"] == ("V4_9_7" if rocket.is_old else "V5_4_0")
    assert rocket.rows("cluster", "list")[0]["address"] == row["address"]
    rocket.send_three(rocket.topic("Counted"))
    wait_until(lambda: rocket.rows("cluster", "list", "--totals")[0]["inToday"] >= 3, "sends are counted")
    status = {each["key"]: each["value"] for each in rocket.rows("broker", "status", "broker-a")}
    assert int(status["commitLogMaxOffset"]) > 0
    if rocket.is_old:
        assert NEWER in rocket.refused("broker", "replicas")
    else:
        assert rocket.rows("broker", "replicas")[0]["master"] == row["address"]
    rocket.well("broker", "pause-writes", "broker-a", "--yes")
    assert rocket.rows("topic", "route", "Counted")[0]["permission"] == "R"
    rocket.well("broker", "resume-writes", "broker-a")
    assert rocket.rows("topic", "route", "Counted")[0]["permission"] == "RW"
    for what in ("--logs", "--queues"):
        assert "files  kept → deleted" in rocket.well("broker", "clean", what)
    assert "broker-z" in rocket.refused("broker", "status", "broker-z", code=4)


def test_producers_are_listed(rocket: Rocket) -> None:
    topic = rocket.topic("Produced")
    with blocking.Producer("ShopProducers", rocket.names) as producer:
        producer.send(Message(topic, b"x"))
        wait_until(lambda: "ShopProducers" in {row["group"] for row in rocket.rows("broker", "producers")})


def test_groups_are_created_shown_changed_and_deleted(rocket: Rocket) -> None:
    rocket.well("group", "create", "Plain", "--retries", "3")
    (row,) = rocket.rows("group", "list", "Pla*")
    assert (row["retryMaxTimes"], row["consumes"]) == (3, True)
    changed = rocket.well("group", "update", "Plain", "--retries", "5")
    assert "retry_max_times  3 → 5" in changed
    assert changed.count("→") == 1
    assert rocket.rows("group", "describe", "Plain")["settings"]["broker-a"]["retryMaxTimes"] == 5
    rocket.well("group", "update", "Plain", "--disable", "--yes")
    assert rocket.rows("group", "list", "Plain")[0]["consumes"] is False
    assert rocket.run("group", "members", "Plain").code == 4
    assert rocket.run("group", "delete", "Plain").code == 2
    rocket.well("group", "delete", "Plain", "--yes", "--with-offsets", "--with-topics")
    assert "there is no group Plain" in rocket.refused("group", "describe", "Plain", code=4)


def test_members_tell_of_themselves_and_lag_is_seen_and_reset(rocket: Rocket) -> None:
    topic = rocket.topic("Consumed")
    first = rocket.send_three(topic)[0]["messageId"]
    rocket.well("group", "create", "Billing")
    seen: list[ReceivedMessage] = []
    consumer = blocking.PushConsumer("Billing", rocket.names)
    consumer.on(topic)(seen.append)
    with consumer:
        wait_until(lambda: len(seen) == 3, "three messages are consumed")
        wait_until(lambda: rocket.run("group", "members", "Billing").code == 0, "the broker knows the member")
        (member,) = rocket.rows("group", "members", "Billing")
        assert member["language"] == "PYTHON"
        told = rocket.rows("group", "client", "Billing", member["clientId"])
        assert topic in {queue["topic"] for queue in told["queues"]}
        to_it = ("--group", "Billing", "--client", member["clientId"])
        assert "CR_SUCCESS" in rocket.well("msg", "deliver", topic, first, *to_it)
        assert len(seen) == 4
        wait_until(lambda: [row["lag"] for row in rocket.rows("group", "lag", "--topic", topic)] == [0])
        assert rocket.rows("topic", "groups", topic) == [{"group": "Billing"}]
        if rocket.is_old:
            assert NEWER in rocket.refused("group", "topics", "Billing")
        else:
            assert {"topic": topic} in rocket.rows("group", "topics", "Billing")
    rocket.well("reset", "--group", "Billing", "--topic", topic, "--to", "earliest", "--yes")
    wait_until(lambda: sum(row["lag"] for row in rocket.rows("group", "lag", "Billing", "--topic", topic)) == 3)
    sick = rocket.run("doctor", "--group", "Billing")
    assert sick.code == 1
    assert "no client" in sick.output


def test_messages_are_found_shown_copied_and_sent_again(rocket: Rocket) -> None:
    topic, again = rocket.topic("Orders"), rocket.topic("Again", 1)
    rows = rocket.send_three(topic)
    wanted = rows[1]
    shown = rocket.rows("msg", "get", topic, wanted["messageId"])
    assert (shown["body"], shown["tags"], shown["keys"]) == ("1", "paid", ["o-1"])
    place = wanted["broker"], str(wanted["queueId"]), str(wanted["queueOffset"])
    assert rocket.rows("msg", "at", topic, *place)["message_id"] == wanted["messageId"]
    assert rocket.run("msg", "find", topic, "nobody").code == 4
    assert rocket.run("msg", "get", topic, "A" * 32).code == 4
    assert rocket.well("msg", "print", topic, "--limit", "3").count("[paid] (o-1)") == 3
    assert rocket.well("msg", "tail", topic, "--from", "earliest", "--limit", "3").count("[paid] (o-1)") == 3
    rocket.well("msg", "resend", topic, wanted["messageId"])
    wait_until(lambda: rocket.rows("topic", "describe", topic)["messages"] == 4)
    rocket.well("msg", "copy", topic, again, "--since", "1h", "--key", "o-1")
    wait_until(lambda: rocket.rows("topic", "describe", again)["messages"] == 4)


def test_traces_are_shown(rocket: Rocket) -> None:
    topic = rocket.topic("Traced")
    with blocking.Producer("Tracers", client=ClientSettings(rocket.names, trace=True)) as producer:
        sent = producer.send(Message(topic, b"x")).message_id
    wait_until(lambda: rocket.run("trace", "show", sent).code == 0, "the trace is in the index")
    (event,) = rocket.rows("trace", "show", sent)
    assert (event["group"], event["topic"], event["succeeded"]) == ("Tracers", topic, True)


def test_settings_are_read_and_changed_with_a_difference(rocket: Rocket) -> None:
    (row,) = rocket.rows("config", "get", "fileReservedTime")
    changed = rocket.well("config", "set", "fileReservedTime=96", "--broker", "broker-a")
    assert f"fileReservedTime  {row['value']} → 96" in changed
    assert rocket.rows("config", "get", "fileReservedTime")[0]["value"] == "96"
    assert rocket.rows("config", "diff") == []
    assert "do not show colour" in rocket.refused("config", "set", "colour=1", "--all", code=2)


def test_name_servers_keep_values_and_settings(rocket: Rocket) -> None:
    rocket.well("namesrv", "put", "Space", "key", "value")
    assert rocket.rows("namesrv", "values", "Space") == [{"namespace": "Space", "key": "key", "value": "value"}]
    rocket.well("namesrv", "remove", "Space", "key", "--yes")
    assert rocket.rows("namesrv", "values", "Space") == []
    assert "orderMessageEnable  false → true" in rocket.well("namesrv", "set", "orderMessageEnable=true")
    settings = {row["key"]: row["value"] for row in rocket.rows("namesrv", "settings")}
    assert settings["orderMessageEnable"] == "true"


def test_users_and_rights_are_managed_where_a_broker_keeps_them(rocket: Rocket) -> None:
    if rocket.is_old:
        for command in (("user", "list"), ("user", "create", "alice", "--password", "secret-3"), ("acl", "list")):
            assert NEWER in rocket.refused(*command)
        return
    rocket.well("user", "create", "alice", "--password", "secret-3")
    assert [row["user"] for row in rocket.rows("user", "list")] == ["alice"]
    assert "status  enable → disable" in rocket.well("user", "update", "alice", "--disable", "--yes")
    assert rocket.rows("user", "show", "alice")[0]["status"] == "disable"
    rocket.well("acl", "grant", "alice", "Topic:Orders", "--actions", "Pub,Sub")
    (right,) = rocket.rows("acl", "list", "alice")
    assert (right["subject"], right["resource"], right["actions"]) == ("User:alice", "Topic:Orders", ["Pub", "Sub"])
    assert rocket.rows("acl", "show", "alice") == [right]
    rocket.well("acl", "revoke", "alice", "--yes")
    assert rocket.run("acl", "show", "alice").code == 4
    rocket.well("user", "delete", "alice", "--yes")
    assert rocket.run("user", "show", "alice").code == 4


def test_what_is_ours_alone_says_so(rocket: Rocket) -> None:
    for command in (
        ("quota", "list"),
        ("quota", "set", "--account", "alice", "connections=5"),
        ("quota", "remove", "--account", "alice"),
        ("transactions", "list"),
        ("transactions", "commit", "A" * 32),
        ("transactions", "rollback", "--all", "--yes"),
        ("timers", "list"),
    ):
        assert OURS_ALONE in rocket.refused(*command)
    assert "`timers list --count`" in rocket.refused("timers", "list")


class OutOfStock(Exception):
    """An application's own."""


def test_dead_letters_are_shown_with_their_cause_and_sent_again(rocket: Rocket) -> None:
    topic = rocket.topic("Buried", 1)
    rocket.well("group", "create", "Buriers")
    rocket.send_three(topic)
    seen: list[bytes] = []

    def fail(message: ReceivedMessage) -> None:
        seen.append(message.body)
        raise OutOfStock("none left")

    def consumer() -> blocking.PushConsumer:
        made = blocking.PushConsumer("Buriers", rocket.names, settings=PushConsumerSettings(max_reconsume_times=0))
        made.subscribe(topic, fail)
        return made

    assert rocket.run("dlq", "list", "Nobody").code == 4
    with consumer():
        wait_until(lambda: len(_letters(rocket)) == 3, "three messages are dead")
    letters = sorted(_letters(rocket), key=lambda letter: str(letter["body"]))
    assert [letter["body"] for letter in letters] == ["0", "1", "2"]
    assert {letter["topic"] for letter in letters} == {topic}
    assert all(letter["error"].endswith("OutOfStock") for letter in letters)
    assert "in fail" in rocket.well("dlq", "list", "Buriers", "--trace")
    one = letters[1]["messageId"]
    tried = rocket.well("dlq", "resend", "Buriers", "--id", one, "--dry-run")
    assert (tried.count("dead → sent again"), "nothing was changed" in tried) == (1, True)
    assert "say which" in rocket.refused("dlq", "resend", "Buriers", code=2)
    assert "1 message sent again" in rocket.well("dlq", "resend", "Buriers", "--id", one)
    with consumer():
        wait_until(lambda: len(seen) == 4, "the group has it again")
    assert seen[3] == b"1"
    rocket.well("dlq", "resend", "Buriers", "--id", one, "--to-topic")
    wait_until(lambda: rocket.rows("topic", "describe", topic)["messages"] >= 4, "the topic has it again")
    rocket.well("dlq", "replay", "Buriers", "--all", "--rate", "50", "--to-topic")
    wait_until(lambda: rocket.rows("topic", "describe", topic)["messages"] >= 7, "the topic has all again")
    many = len(_letters(rocket))  # what came again has died again
    assert {"group": "Buriers", "messages": many}.items() <= rocket.rows("dlq", "list")[0].items()
    assert f"are deleted: {many}. Do it?" in rocket.refused("dlq", "purge", "Buriers", code=2)
    assert f"{many} dead letters deleted" in rocket.well("dlq", "purge", "Buriers", "--yes")
    wait_until(lambda: rocket.rows("dlq", "list") == [], "no dead letters are left")
    assert "nothing is to be changed" in rocket.well("dlq", "purge", "Buriers", "--yes")


def _letters(rocket: Rocket) -> Any:
    done = rocket.run("dlq", "list", "Buriers", "--output", "json")
    return json.loads(done.output) if done.code == 0 else []


def test_timers_are_counted_and_taken_back_where_a_broker_has_them(rocket: Rocket) -> None:
    topic = rocket.topic("Later")
    if rocket.is_old:
        handle = RecallHandle(topic, "broker-a", "1", "A" * 32).encode()
        for command in (("timers", "list", "--count"), ("timers", "recall", handle, "--yes")):
            assert NEWER in rocket.refused(*command)
        assert rocket.run("timers", "recall", "A" * 32, "--yes").code == 4
        return
    with blocking.Producer("Sleepers", rocket.names) as producer:
        by_handle = producer.send(Message(topic, b"x", delay=3600))
        by_id = producer.send(Message(topic, b"y", delay=3600))
    wait_until(lambda: _waiting(rocket, topic) == [2], "both are on the wheel")
    assert by_handle.recall_handle
    taken = rocket.well("timers", "recall", by_handle.recall_handle, "--yes")
    assert f"{by_handle.message_id} is taken back" in taken
    wait_until(lambda: rocket.run("timers", "recall", by_id.message_id, "--yes").code == 0, "it is in the index")
    assert rocket.run("timers", "recall", "A" * 32, "--yes").code == 4
    wait_until(lambda: _waiting(rocket, topic) in ([], [0]), "none waits")


def _waiting(rocket: Rocket, topic: str) -> list[int]:
    return [row["waiting"] for row in rocket.rows("timers", "list", "--count", "--topic", topic)]


def test_what_is_no_controller_is_named(rocket: Rocket) -> None:
    (broker,) = rocket.rows("broker", "list")
    for address in (rocket.names, broker["address"]):
        for command in (("status", address), ("replicas", address), ("elect", address, "broker-a", "1", "--yes")):
            said = rocket.refused("controller", *command)
            assert address in said
            assert "not a controller" in said


def test_controllers_of_rocketmq_are_asked_and_told(apache_of_version: Callable[[str], Apache], tmp_path: Path) -> None:
    apache = apache_of_version("5.4.0")
    with (
        our_name_server(tmp_path) as names,
        apaches_controller(apache, tmp_path) as address,
        apache_replicas(apache, tmp_path, 2, names, address) as (first, second),
    ):
        rocket = Rocket("5.4.0", names)
        wait_until(lambda: len(_in_sync(rocket, address)) == 2, "both are in sync", seconds=120)
        status = rocket.rows("controller", "status", address)
        assert (status["group"], status["leaderId"], status["leaderAddress"]) == ("group1", "n0", address)
        replicas = {row["address"]: row for row in rocket.rows("controller", "replicas", address)}
        assert {row["broker"] for row in replicas.values()} == {BROKER}
        assert (replicas[first.address]["role"], replicas[second.address]["role"]) == ("master", "slave")
        assert "knows no replica set named broker-z" in rocket.refused(
            "controller", "replicas", address, "broker-z", code=4
        )

        chosen = str(replicas[second.address]["brokerId"])
        assert f"set {BROKER} has no replica 77" in rocket.refused("controller", "elect", address, BROKER, "77", code=4)
        assert "--yes" in rocket.refused("controller", "elect", address, BROKER, chosen, code=2)
        rocket.well("controller", "elect", address, BROKER, chosen, "--yes")
        assert "nothing is to be changed" in rocket.well("controller", "elect", address, BROKER, chosen)
        wait_until(lambda: _roles(rocket, address).get(second.address) == "master", "the other is master")

        changed = rocket.well("controller", "set", address, "scanNotActiveBrokerInterval=4000")
        assert "scanNotActiveBrokerInterval  5000 → 4000" in changed
        settings = {row["key"]: row["value"] for row in rocket.rows("controller", "settings", address)}
        assert settings["scanNotActiveBrokerInterval"] == "4000"

        lives = str(replicas[first.address]["brokerId"])
        alive = rocket.refused("controller", "forget", address, BROKER, "--id", lives, "--yes")
        assert "still alive" in alive
        first.kill()
        forget = ("controller", "forget", address, BROKER, "--id", lives, "-c", CLUSTER, "--yes")
        wait_until(lambda: rocket.run(*forget).code == 0, "its controller took it for dead", seconds=60)
        assert [row["address"] for row in rocket.rows("controller", "replicas", address)] == [second.address]


def _in_sync(rocket: Rocket, address: str) -> list[str]:
    done = rocket.run("controller", "replicas", address, BROKER, "--output", "json")
    return [row["address"] for row in json.loads(done.output) if row["inSync"]] if done.code == 0 else []


def _roles(rocket: Rocket, address: str) -> dict[str, str]:
    return {row["address"]: row["role"] for row in rocket.rows("controller", "replicas", address)}


def test_a_file_is_applied_and_then_nothing_is_left_to_do(rocket: Rocket, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text("topics:\n  Declared: {queues: 3}\ngroups:\n  DeclaredGroup: {retry_max_times: 3}\n")
    assert "applied" in rocket.well("apply", "-f", str(file))
    wait_until(lambda: rocket.run("topic", "route", "Declared").code == 0)
    assert rocket.rows("topic", "list", "Declared")[0]["readQueues"] == 3
    assert rocket.rows("group", "list", "DeclaredGroup")[0]["retryMaxTimes"] == 3
    assert "nothing is to be changed" in rocket.well("apply", "-f", str(file))


def test_a_type_that_a_broker_cannot_keep_is_not_claimed(rocket: Rocket) -> None:
    done = rocket.run("topic", "create", "Ordered", "--queues", "1", "--type", "fifo")
    if rocket.is_old:
        assert done.code == 1, done.output
        assert "keeps no attributes" in " ".join(done.errors.split())
        return
    assert done.code == 0, done.errors
    assert rocket.rows("topic", "list", "Ordered")[0]["type"] == "FIFO"


@pytest.mark.parametrize("way", ["update", "apply"])
def test_attributes_that_a_broker_cannot_keep_are_not_claimed(rocket: Rocket, tmp_path: Path, way: str) -> None:
    topic = rocket.topic(f"Kept{way}")
    file = tmp_path / "cluster.yml"
    file.write_text(f"topics:\n  {topic}: {{attributes: {{message.type: FIFO}}}}\n")
    command: tuple[str, ...] = ("apply", "-f", str(file))
    if way == "update":
        command = ("topic", "update", topic, "--attribute", "message.type=FIFO")
    if rocket.is_old:
        assert "but without message.type: that broker keeps no attributes" in rocket.refused(*command)
        return
    rocket.well(*command)
    assert rocket.rows("topic", "list", topic)[0]["attributes"]["message.type"] == "FIFO"


def test_topics_that_a_broker_names_after_itself_are_the_systems(rocket: Rocket) -> None:
    types = {row["topic"]: row["type"] for row in rocket.rows("topic", "list", "--all")}
    assert {types[name] for name in ("DefaultCluster", "broker-a")} == {"SYSTEM"}
    assert {"DefaultCluster", "broker-a"}.isdisjoint(row["topic"] for row in rocket.rows("topic", "list"))
