"""mqadmin's names that need more than a plain cluster: users and rights, traces, files."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.client import Message, blocking
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, at, skyrocket
from tests.waiting import wait_until

USERS = pytest.mark.rocketmq(
    settings={
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "initAuthenticationUser": '{"username":"root","password":"secret-1"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"secret-2"}',
    }
)


@USERS
def test_users_and_rights_are_made_shown_and_deleted(rocketmq: LocalCluster) -> None:
    broker = rocketmq.broker_addresses["broker-a"]

    def run(command: str) -> Done:
        account = {"ROCKETMQ_ACCESS_KEY": "root", "ROCKETMQ_SECRET_KEY": "secret-1"}
        return at(rocketmq.name_server_address, "mqadmin", *command.split(), **account)

    def said(command: str) -> str:
        done = run(command)
        assert done.code == 0, f"{command}: {done.errors}"
        return done.output

    assert f"create user to {broker} success." in said(f"createUser -b {broker} -u alice -p secret-3")
    assert run(f"createUser -b {broker} -u alice -p secret-3").code == 1
    said("updateUser -c DefaultCluster -u alice -s disable")
    shown = said(f"getUser -b {broker} -u alice")
    assert re.search(r"alice +\*{6} +Normal +disable", shown)
    assert "secret-" not in said(f"listUser -b {broker}")
    said(f"createAcl -b {broker} -s User:alice -r Topic:Orders,Group:Billing -a Pub,Sub -i 127.0.0.1 -d Allow")
    said(f"updateAcl -b {broker} -s User:alice -r Topic:Orders -a Pub -d Deny")
    listed = said(f"listAcl -b {broker} -s alice")
    assert re.search(r"User:alice +Custom +Topic:Orders +\[Pub\] +null +Deny", listed)
    assert re.search(r"User:alice +Custom +Group:Billing +\[Pub, Sub\] +\[127.0.0.1\] +Allow", listed)
    assert re.search(r"Group:Billing", said(f"getAcl -b {broker} -s User:alice"))
    assert "copy user of alice" in said(f"copyUser -f {broker} -t {broker} -u alice")
    assert "copy acl of User:alice" in said(f"copyAcl -f {broker} -t {broker}")
    said(f"deleteAcl -b {broker} -s User:alice")
    said(f"deleteUser -b {broker} -u alice")
    assert run(f"getUser -b {broker} -u alice").code == 4


def test_a_trace_is_shown_in_two_tables(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    client = replace(rocketmq.client_settings, trace=True)
    seen: list[str] = []
    consumer = blocking.PushConsumer("Billing", client=client)
    consumer.on("Orders")(lambda message: seen.append(message.message_id))
    with blocking.Producer("Shop", client=client) as producer, consumer:
        sent = producer.send(Message("Orders", b"paid"))
        wait_until(lambda: seen == [sent.message_id])

    def traced() -> Done:
        return skyrocket(rocketmq, "mqadmin", "queryMsgTraceById", "-i", sent.message_id)

    wait_until(lambda: "Sub " in traced().output)
    text = traced().output
    assert re.search(r"Pub +Shop +\S+ +20\d\d-\S+ \S+ +\d+ms +success", text)
    assert re.search(r"Sub +Billing +\S+ +20\d\d-\S+ \S+ +\d+ms +success", text)
    assert skyrocket(rocketmq, "mqadmin", "queryMsgTraceById", "-i", "A" * 32).code == 4


def test_a_log_file_is_dumped(rocketmq: LocalCluster, tmp_path: Path) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"paid", keys=["o-1"]))
    (log,) = sorted(rocketmq.directory.rglob("commitlog/0*"))[:1]
    copy = tmp_path / "log"
    shutil.copy(log, copy)
    done = skyrocket(rocketmq, "mqadmin", "dumpCompactionLog", "-f", str(copy))
    assert done.code == 0, done.errors
    assert "KEYS=o-1" in done.output
    assert skyrocket(rocketmq, "mqadmin", "dumpCompactionLog", "-f", str(tmp_path)).code == 2
