"""The calls that RocketMQ's dashboard makes for its pages, with the library that it is built with, against our server.

The list is that of the calls to `MQAdminExt` in the dashboard's services and controllers (July 2026). Users and access
rules, which it manages with the calls of mqadmin's verbs, are in test_acl.py.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.client_program import message, running_client
from tests.interop.observer import observing
from tests.interop.standalone import running_standalone
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

VERSION = "5.3.3"  # what the dashboard's build names
TOPIC, GROUP, QUEUES = "Orders", "Readers", 4
# The start page and the cluster page read these from the broker's table.
RUNTIME_STATS = {
    *("putTps", "getTransferedTps", "msgPutTotalTodayMorning", "msgPutTotalTodayNow", "msgPutTotalYesterdayMorning"),
    *("msgGetTotalTodayMorning", "msgGetTotalTodayNow", "msgGetTotalYesterdayMorning", "brokerVersionDesc"),
}


def test_the_dashboards_pages_get_their_answers(apache_of_version: Callable[[str], Apache], tmp_path: Path) -> None:
    apache = apache_of_version(VERSION)
    with running_standalone(tmp_path) as server, observing(server) as observer:
        command = apache.command("ScenarioClient", server.name_server, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            observer.create_topic(TOPIC, QUEUES)
            client.consume("reader", GROUP, TOPIC)
            messages = [message(TOPIC, b"body-%d" % i, keys=f"key-{i}", tags="t") for i in range(2 * QUEUES)]
            sent = [client.send("sync", one)[0] for one in messages]
            wait_until(lambda: observer.committed(GROUP, TOPIC, QUEUES) == [2] * QUEUES, "the group commits them")
            words = (server.name_server, TOPIC, GROUP, sent[3].message_id or "", "key-3")
            done = apache.run("DashboardRequests", *words, stdin="", timeout_s=120, log_level="OFF")
    assert done.exit_code == 0, done.stdout + done.stderr
    answers = dict(re.findall(r"^== (\w+) (.*)$", done.stdout, re.MULTILINE))
    assert set(answers.pop("runtimeStats").strip("[]").split(", ")) >= RUNTIME_STATS
    assert {TOPIC, "%RETRY%" + GROUP} <= set(answers.pop("topics").strip("[]").split(", "))
    assert answers.pop("topicPutNums").isdigit()  # of today, sampled every few minutes
    assert answers == {
        "brokers": "[broker-a]",
        "putTps": "3",  # of ten seconds, a minute, ten minutes
        "msgPutTotalTodayNow": "8",
        "brokerConfig": "broker-a",
        "topicTable": "true",
        "routeQueues": "4",
        "messages": "8",
        "consumedBy": f"[{GROUP}]",
        "topicConfig": "4 6",
        "newTopic": "4",
        "groupTable": "true",
        "lag": "0",
        "consumeTps": "true",
        "members": "1 CLUSTERING",
        "runningInfo": "CONSUME_PASSIVELY 2",
        "stack": "true",
        "retries": "16",
        "newGroup": "3",
        "producers": "1",
        "message": "body-3 key-3",
        "byKey": "1",
        "track": f"{GROUP} CONSUMED",
        "direct": "CR_SUCCESS",
        "reset": "4",
        "deletedGroup": "true",
        "deletedTopic": "true",
    }
