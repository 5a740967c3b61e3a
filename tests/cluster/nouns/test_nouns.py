"""The other nouns: what each verb shows and changes, and what Admin does behind them."""

import json
import re
from pathlib import Path

import pytest

from skyrocket.client import BrokerRefused, Message, MessageQueue, NotFound, PushConsumerSettings, ReceivedMessage
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import at, rows, skyrocket, well
from tests.waiting import wait_until

USERS = pytest.mark.rocketmq(
    settings={
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "initAuthenticationUser": '{"username":"root","password":"secret-1"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"secret-2"}',
    }
)


def consumed(rocketmq: LocalCluster, group: str = "Billing") -> None:
    """A group that has consumed all of Orders, and stopped."""
    seen: list[ReceivedMessage] = []
    consumer = rocketmq.push_consumer(group)
    consumer.on("Orders")(seen.append)
    with consumer:
        wait_until(lambda: len(seen) == 3)
    with rocketmq.admin() as admin:
        wait_until(lambda: sum(each.lag for each in admin.consumer_lag(group, "Orders")) == 0)


def send_three(rocketmq: LocalCluster) -> list[str]:
    rocketmq.create_topic("Orders", queues=2)
    with rocketmq.producer() as producer:
        return [producer.send(Message("Orders", b"%d" % i, "paid", [f"o-{i}"])).message_id for i in range(3)]


def test_brokers_and_clusters_are_listed_with_what_they_count(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    (row,) = rows(rocketmq, "broker", "list")
    assert (row["broker"], row["role"], row["cluster"]) == ("broker-a", "master", "DefaultCluster")
    assert row["version"].startswith("V5")
    assert rows(rocketmq, "cluster", "list")[0]["address"] == rocketmq.broker_addresses["broker-a"]
    assert rows(rocketmq, "cluster", "list", "--totals")[0]["inToday"] >= 3
    status = {row["key"]: row["value"] for row in rows(rocketmq, "broker", "status", "broker-a")}
    assert int(status["commitLogMaxOffset"]) > 0
    assert rows(rocketmq, "broker", "replicas")[0]["master"] == rocketmq.broker_addresses["broker-a"]
    assert "Orders" in [row["topic"] for row in rows(rocketmq, "cluster", "topics", "DefaultCluster")]
    assert skyrocket(rocketmq, "broker", "status", "broker-z").code == 4
    with rocketmq.producer("Shop") as producer:
        producer.send(Message("Orders", b"x"))
        wait_until(lambda: "Shop" in {row["group"] for row in rows(rocketmq, "broker", "producers")})


def test_writes_to_a_broker_are_paused_and_resumed(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    assert skyrocket(rocketmq, "broker", "pause-writes", "broker-a").code == 2
    well(rocketmq, "broker", "pause-writes", "broker-a", "--yes")
    assert rows(rocketmq, "topic", "route", "Orders")[0]["permission"] == "R"
    resumed = well(rocketmq, "broker", "resume-writes", "broker-a")
    assert "producers are sent there  no, if it was paused → yes, for all its topics" in resumed
    assert re.search(rf"name server {rocketmq.name_server_address}: \d+ topics can be read and written there", resumed)
    assert rows(rocketmq, "topic", "route", "Orders")[0]["permission"] == "RW"


def test_a_group_is_created_shown_changed_and_deleted(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    well(rocketmq, "group", "create", "Billing", "--retries", "3")
    (row,) = rows(rocketmq, "group", "list", "Bill*")
    assert (row["retryMaxTimes"], row["consumes"]) == (3, True)
    consumed(rocketmq)
    changed = well(rocketmq, "group", "update", "Billing", "--retries", "5")
    assert "retry_max_times  3 → 5" in changed
    assert changed.count("→") == 1
    described = rows(rocketmq, "group", "describe", "Billing")
    assert described["settings"]["broker-a"]["retryMaxTimes"] == 5
    assert described["lag"] == 0
    assert rows(rocketmq, "group", "topics", "Billing") == [{"topic": "Orders"}]
    assert rows(rocketmq, "topic", "groups", "Orders") == [{"group": "Billing"}]
    assert skyrocket(rocketmq, "group", "members", "Billing").code == 4
    assert skyrocket(rocketmq, "group", "update", "Billing", "--set", "colour=red").code == 2
    assert skyrocket(rocketmq, "group", "delete", "Billing").code == 2
    well(rocketmq, "group", "delete", "Billing", "--yes", "--with-topics")
    assert skyrocket(rocketmq, "group", "describe", "Billing").code == 4


def test_lag_is_shown_queue_by_queue_and_for_all_groups(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    consumed(rocketmq)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"more"))
    by_queue = rows(rocketmq, "group", "lag", "Billing", "--topic", "Orders")
    assert sum(row["lag"] for row in by_queue) == 1
    (total,) = rows(rocketmq, "group", "lag", "--topic", "Orders")
    assert (total["group"], total["lag"]) == ("Billing", 1)
    assert "1 message waits" in well(rocketmq, "group", "lag", "Billing")


def test_members_of_a_group_tell_of_themselves(rocketmq: LocalCluster) -> None:
    (first, *_) = send_three(rocketmq)
    seen: list[ReceivedMessage] = []
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Orders", tags="paid")(seen.append)
    with consumer:
        wait_until(lambda: len(seen) == 3)
        wait_until(lambda: skyrocket(rocketmq, "group", "members", "Billing").code == 0)
        (member,) = rows(rocketmq, "group", "members", "Billing")
        assert member["language"] == "PYTHON"
        told = rows(rocketmq, "group", "client", "Billing", member["clientId"])
        assert {queue["topic"] for queue in told["queues"]} >= {"Orders"}
        wait_until(lambda: rows(rocketmq, "msg", "get", "Orders", first)["groups"][0]["state"] == "CONSUMED")
        delivered = skyrocket(
            rocketmq, "msg", "deliver", "Orders", first, "--group", "Billing", "--client", member["clientId"]
        )
        assert "CR_SUCCESS" in delivered.output
        assert len(seen) == 4


def test_messages_are_found_shown_copied_and_sent_again(rocketmq: LocalCluster) -> None:
    ids = send_three(rocketmq)
    (found,) = rows(rocketmq, "msg", "find", "Orders", "o-1")
    assert found["messageId"] == ids[1]
    assert skyrocket(rocketmq, "msg", "find", "Orders", "nobody").code == 4
    shown = rows(rocketmq, "msg", "get", "Orders", ids[1])
    assert (shown["body"], shown["tags"], shown["keys"]) == ("1", "paid", ["o-1"])
    place = shown["broker"], str(shown["queue_id"]), str(shown["queue_offset"])
    assert rows(rocketmq, "msg", "at", "Orders", *place)["message_id"] == ids[1]
    assert skyrocket(rocketmq, "msg", "at", "Orders", "broker-a", "0", "999").code == 4
    assert skyrocket(rocketmq, "msg", "get", "Orders", "A" * 32).code == 4
    assert skyrocket(rocketmq, "msg", "get", "Orders", "short").code == 2
    well(rocketmq, "msg", "resend", "Orders", ids[1])
    assert sorted(each.body for each in rocketmq.messages("Orders")) == [b"0", b"1", b"1", b"2"]
    rocketmq.create_topic("Again", queues=1)
    well(rocketmq, "msg", "copy", "Orders", "Again", "--since", "1h", "--key", "o-2")
    (copy,) = rocketmq.messages("Again")
    assert (copy.body, copy.tags, copy.keys) == (b"2", "paid", ["o-2"])


def test_a_body_is_decoded_by_the_schema_of_its_topic(rocketmq: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "note.avsc").write_text('"string"')
    (tmp_path / "schemas.toml").write_text("[[schema]]\ntopics = 'Ord*'\nfile = 'note.avsc'\n")
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        good = producer.send(Message("Orders", b"\x0atea\x1bx"))
        bad = producer.send(Message("Orders", b"tea"))
    schemas = ("--schemas", str(tmp_path / "schemas.toml"))
    shown = rows(rocketmq, "msg", "get", "Orders", good.message_id, *schemas)
    assert (shown["decoded"], shown["schema"]) == ("tea\x1bx", "note.avsc")
    assert "\x1b" not in well(rocketmq, "msg", "get", "Orders", good.message_id, *schemas)
    why = rows(rocketmq, "msg", "at", "Orders", "broker-a", "0", str(bad.queue_offset), *schemas)["not_decoded"]
    assert "no datum of the Avro schema" in why
    assert skyrocket(rocketmq, "msg", "get", "Orders", good.message_id, "--schemas", "nothing.toml").code == 2


def test_a_body_that_could_command_a_terminal_is_shown_as_text(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        sent = producer.send(Message("Orders", b"\x1b[2J\xc2\x9bx", keys=["k\x1b]0;t"], properties={"p": "\x1b[31m"}))
    for output in ("table", "wide", "json", "jsonl", "csv"):
        for command in (("msg", "get", "Orders", sent.message_id), ("msg", "find", "Orders", "k\x1b]0;t")):
            text = well(rocketmq, *command, "--output", output)
            assert "\x1b" not in text
            assert "\x9b" not in text
    for output in ("text", "table", "wide", "json", "jsonl", "csv"):
        text = well(rocketmq, "msg", "print", "Orders", "--output", output)
        assert "\x1b" not in text
        assert "\x9b" not in text
    assert json.loads(well(rocketmq, "msg", "get", "Orders", sent.message_id, "--output", "json"))["body"][0] == "\x1b"


def test_settings_are_read_compared_and_changed_with_a_difference(rocketmq: LocalCluster) -> None:
    (row,) = rows(rocketmq, "config", "get", "waitTimeMillsInSendQueue")
    assert row["value"] == "200"
    assert skyrocket(rocketmq, "config", "set", "waitTimeMillsInSendQueue=300").code == 2
    shown = well(rocketmq, "config", "set", "waitTimeMillsInSendQueue=300", "--broker", "broker-a")
    assert "waitTimeMillsInSendQueue  200 → 300" in shown
    assert rows(rocketmq, "config", "get", "waitTimeMillsInSendQueue")[0]["value"] == "300"
    assert "nothing is to be changed" in well(rocketmq, "config", "set", "waitTimeMillsInSendQueue=300", "--all")
    assert skyrocket(rocketmq, "config", "set", "noSuchKey=1", "--all").code == 2


def test_name_servers_keep_values_and_settings(rocketmq: LocalCluster) -> None:
    well(rocketmq, "namesrv", "put", "Space", "key", "value")
    assert rows(rocketmq, "namesrv", "values", "Space") == [{"namespace": "Space", "key": "key", "value": "value"}]
    well(rocketmq, "namesrv", "remove", "Space", "key", "--yes")
    assert rows(rocketmq, "namesrv", "values", "Space") == []
    assert any(row["key"] == "listenPort" for row in rows(rocketmq, "namesrv", "settings"))
    assert "orderMessageEnable  false → true" in well(rocketmq, "namesrv", "set", "orderMessageEnable=true")


def test_users_without_access_control_are_refused_with_the_next_step(rocketmq: LocalCluster) -> None:
    refused = skyrocket(rocketmq, "user", "list")
    assert refused.code == 1
    assert "keeps no users: set authenticationEnabled=true" in refused.errors


@USERS
def test_users_and_rights_are_managed_and_passwords_never_shown(rocketmq: LocalCluster) -> None:
    account = ("--access-key", "root", "--secret-key", "secret-1")
    without = skyrocket(rocketmq, "user", "list")
    assert without.code == 1
    assert without.errors.count("--access-key") == 1
    well(rocketmq, "user", "create", "alice", "--password", "secret-3", *account)
    listed = well(rocketmq, "user", "list", "--output", "json", *account)
    assert {row["user"] for row in json.loads(listed)} >= {"root", "alice"}
    assert not re.search(r"secret-\d", listed)
    well(rocketmq, "acl", "grant", "alice", "Topic:Orders", "--actions", "Pub,Sub", *account)
    (right,) = rows(rocketmq, "acl", "list", "alice", *account)
    assert (right["subject"], right["resource"], right["actions"]) == ("User:alice", "Topic:Orders", ["Pub", "Sub"])
    again = skyrocket(rocketmq, "user", "create", "alice", "--password", "secret-3", *account)
    assert again.code == 2
    assert "user alice is there already: `skyrocket user update alice` changes it" in again.errors
    more = well(rocketmq, "acl", "grant", "alice", "Topic:Orders", "--actions", "Pub", "--from", "10.0.0.0/8", *account)
    assert "Topic:Orders  Allow Pub,Sub → Allow Pub from 10.0.0.0/8" in more
    same = well(rocketmq, "acl", "grant", "alice", "Topic:Orders", "--actions", "Pub", "--from", "10.0.0.0/8", *account)
    assert "nothing is to be changed" in same
    for resource, actions, why in (
        ("Topic:Orders", "Fly", "Fly is no action"),
        ("Thing:x", "Pub", "kinds are Cluster"),
    ):
        wrong = skyrocket(rocketmq, "acl", "grant", "alice", resource, "--actions", actions, *account)
        assert wrong.code == 2
        assert why in wrong.errors
    missing = skyrocket(rocketmq, "acl", "revoke", "alice", "Topic:Nope", "--yes", *account)
    assert missing.code == 4
    assert "User:alice has no rights for Topic:Nope" in missing.errors
    fixed = skyrocket(rocketmq, "config", "set", "brokerId=7", "--all", *account)
    assert "brokerId cannot be changed while the broker runs" in fixed.errors
    assert "account" not in fixed.errors, "it is not for want of rights"
    denied = skyrocket(rocketmq, "topic", "create", "Other", "--access-key", "alice", "--secret-key", "secret-3")
    assert denied.code == 1
    assert "account alice may not do it" in denied.errors
    shown = well(rocketmq, "user", "update", "alice", "--disable", "--yes", *account)
    assert "status  enable → disable" in shown
    assert "nothing is to be changed" in well(rocketmq, "user", "update", "alice", "--disable", "--yes", *account)
    assert rows(rocketmq, "user", "show", "alice", *account)[0]["status"] == "disable"
    well(rocketmq, "acl", "revoke", "alice", "--yes", *account)
    assert skyrocket(rocketmq, "acl", "show", "alice", *account).code == 4
    well(rocketmq, "user", "delete", "alice", "--yes", *account)
    assert skyrocket(rocketmq, "user", "show", "alice", *account).code == 4


def test_a_group_is_forbidden_to_read_and_moved_in_one_queue(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    consumed(rocketmq)
    queue = MessageQueue("Orders", "broker-a", 0)
    with rocketmq.admin() as admin:
        admin.move_queue("Billing", queue, 0)
        assert admin.committed("Billing", queue) == 0
        admin.forbid_reading("Billing", "Orders", forbidden=True)
        admin.forbid_reading("Billing", "Orders", forbidden=False)
        entries = admin.queue_entries(queue, 0, 5)
        assert entries.max_index == admin.max_offset(queue)
        assert [message.queue_offset for message in admin.read_queue(queue, 0, 1)] == [0]
        with pytest.raises(NotFound, match="there is no group Nobody"):
            admin.group_configs("Nobody")
        with pytest.raises(BrokerRefused, match="No Any Consumer online"):
            admin.client_offsets("Billing", "Orders")


def test_traces_that_nobody_has_told_are_not_there(rocketmq: LocalCluster) -> None:
    done = skyrocket(rocketmq, "trace", "show", "A" * 32)
    assert done.code == 4
    assert "no client has told of anything yet" in " ".join(done.errors.split())


def test_lag_of_the_systems_groups_is_for_those_who_ask_for_all(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    consumed(rocketmq)
    assert {row["group"] for row in rows(rocketmq, "group", "lag")} == {"Billing"}
    assert "Billing" in {row["group"] for row in rows(rocketmq, "group", "lag", "--all")}


@pytest.mark.parametrize(
    "arguments", [("topic", "list"), ("doctor",), ("group", "lag"), ("mqadmin", "topicList"), ("msg", "send", "T", "x")]
)
def test_a_name_server_that_is_not_there_is_told_in_words(arguments: tuple[str, ...]) -> None:
    done = at("127.0.0.1:1", *arguments)
    assert done.code == 1
    told = done.errors + done.output
    assert "127.0.0.1:1: could not connect: nothing listens there" in told
    assert "Errno" not in told
    assert "ConnectionRefusedError" not in told
    assert "and that one of them runs (`skyrocket namesrv`)" in told or "→ start it, open the port" in told


def test_a_server_that_is_asked_by_its_address_and_is_not_there_is_told_with_the_next_step() -> None:
    done = at("127.0.0.1:1", "controller", "status", "127.0.0.1:1")
    assert done.code == 1
    assert done.errors.rstrip().endswith("nothing listens there; start it, open its port, or correct the address")


def test_dead_letters_are_listed_for_all_groups_replayed_and_purged(rocketmq: LocalCluster) -> None:
    send_three(rocketmq)
    rocketmq.create_group("Billing", retries=0)
    consumer = rocketmq.push_consumer("Billing", settings=PushConsumerSettings(max_reconsume_times=0))

    @consumer.on("Orders")
    def fail(_: ReceivedMessage) -> None:
        raise ValueError("no stock")

    assert rows(rocketmq, "dlq", "list") == []
    with consumer:
        wait_until(lambda: len(rocketmq.dead_letters("Billing")) == 3)
    (row,) = rows(rocketmq, "dlq", "list")
    assert (row["group"], row["messages"]) == ("Billing", 3)
    assert "say of which group" in skyrocket(rocketmq, "dlq", "list", "--key", "o-1").errors
    assert "3 messages sent again" in well(rocketmq, "dlq", "replay", "Billing", "--all", "--rate", "100", "--to-topic")
    unanswered = skyrocket(rocketmq, "dlq", "purge", "Billing")
    assert (unanswered.code, "are deleted: 3. Do it?" in unanswered.errors) == (2, True)
    assert "nothing was changed" in well(rocketmq, "dlq", "purge", "Billing", "--dry-run")
    assert "3 dead letters deleted" in well(rocketmq, "dlq", "purge", "Billing", "--yes")
    assert rows(rocketmq, "dlq", "list") == []
    assert skyrocket(rocketmq, "dlq", "purge", "Nobody", "--yes").code == 4
