"""Mistakes that people made with the client: each is answered with a sentence and the next step, or simply right."""

import ast
import asyncio
import inspect
import itertools
import logging
import textwrap
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skyrocket import Acl, Admin, Message, Producer, ProducerSettings, PushConsumer, PushConsumerSettings, SendFailed
from skyrocket.client import (
    ClientSettings,
    LitePullSettings,
    NotANameServer,
    SendContext,
    SendHook,
    SimpleConsumerSettings,
    WrongUse,
)
from skyrocket.client.core.errors import Attempt
from skyrocket.client.core.message import property_text
from skyrocket.client.core.trouble_log import TroubleLog
from skyrocket.client.sending.retrying_sender import _pause
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import MessageRefused
from skyrocket.remoting.errors import ConnectFailed
from skyrocket.testing.clock import FakeClock
from tests.cluster.client.push_consumers import FIRST
from tests.cluster.servers import cluster
from tests.waiting import until


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"keys": 5}, "keys=5: keys are text, give keys='5' or a list of texts"),
        ({"keys": [5]}, "keys=[5]: 5 is no text, give '5'"),
        ({"keys": ["a b"]}, "key 'a b' is blank or has a blank inside, which separates keys: replace it, as in 'a-b'"),
        ({"keys": [""]}, "key '' is blank or has a blank inside, which separates keys: replace it, as in 'o-1001'"),
        ({"delay": "soon"}, "delay='soon' is not a length of time: write seconds, or 30s, 10m, 2h, 1d"),
        ({"delay": []}, "delay=[]: give seconds, '5m', or a timedelta"),
    ],
)
def test_a_message_that_brokers_would_misread_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageRefused) as caught:
        property_text(Message("Orders", b"x", **fields), "U")
    assert str(caught.value) == said


def test_a_delay_may_be_written_as_on_the_command_line() -> None:
    texts = {property_text(Message("Orders", b"x", delay=delay), "U") for delay in ("5m", 300, timedelta(minutes=5))}
    assert texts == {"UNIQ_KEY\x01U\x02WAIT\x01true\x02TIMER_DELAY_MS\x01300000\x02"}


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (
            PushConsumerSettings,
            {"max_concurrency": "3"},
            "max_concurrency='3' is of the wrong kind: give a whole number",
        ),
        (PushConsumerSettings, {"orderly": "yes"}, "orderly='yes' is of the wrong kind: give True or False"),
        (PushConsumerSettings, {"max_concurrency": True}, "max_concurrency=True is of the wrong kind"),
        (
            PushConsumerSettings,
            {"message_model": "BROADCASTING"},
            "give MessageModel.CLUSTERING or MessageModel.BROADCASTING",
        ),
        (
            ProducerSettings,
            {"compress_type": "GZIP"},
            "compress_type='GZIP' is of the wrong kind: give CompressionType.LZ4 or CompressionType.ZSTD or "
            "CompressionType.ZLIB",
        ),
        (ProducerSettings, {"send_timeout": "3s"}, "send_timeout='3s' is of the wrong kind: give a number (seconds,"),
        (ProducerSettings, {"timeout_per_attempt": "1"}, "timeout_per_attempt='1' is of the wrong kind"),
        (LitePullSettings, {"pull_batch_size": None}, "pull_batch_size=None is of the wrong kind: give a whole number"),
        (SimpleConsumerSettings, {"max_reconsume_times": "1"}, "max_reconsume_times='1' is of the wrong kind"),
        (ClientSettings, {"api_timeout": "1"}, "api_timeout='1' is of the wrong kind"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(kind: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        kind(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [Message, PushConsumerSettings, ProducerSettings, LitePullSettings, SimpleConsumerSettings, ClientSettings],
    ids=lambda kind: kind.__name__,
)
def test_every_setting_has_help_where_editors_look_for_it(kind: Any) -> None:
    (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body if hasattr(node, "body"))
    helped = {
        field.target.id
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and str(text.value.value).endswith(".")
    }
    assert {field.name for field in fields(kind)} == helped


async def test_a_topic_without_queues_is_refused_and_an_unknown_group_is_named(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        for queues in (0, -1, "3"):
            with pytest.raises(
                WrongUse, match=rf"topic x cannot have {queues!r} read and {queues!r} write queues: 1 to "
            ):
                await admin.create_topic("x", queues)  # type: ignore[arg-type]
        with pytest.raises(
            WrongUse, match=r"no broker knows consumer group zzz: check .*Admin.groups\), or name a topic"
        ):
            await admin.consumer_lag("zzz")


async def test_a_broker_that_is_taken_for_a_name_server_is_told_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        broker = f"127.0.0.1:{given.ports['broker-a']}"
        said = rf"{broker} is not a name server \(.*105.*\): a broker listens there"
        async with Producer("Shop", broker) as producer:
            with pytest.raises(NotANameServer, match=said):
                await producer.send("Orders", "x")
        consumer = PushConsumer("Billing", client=ClientSettings(broker, wait_for_name_servers=True))
        consumer.subscribe("Orders", lambda message: None)
        with pytest.raises(NotANameServer, match=said):
            await consumer.start()


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        (None, "the broker wants an account: give credentials=Acl(user, secret), or --access-key and --secret-key"),
        (Acl("admin", "wrong"), "the broker does not accept this account: check user and secret of credentials=Acl("),
    ],
)
async def test_a_missing_or_wrong_account_is_not_tried_again(
    tmp_path: Path, credentials: Acl | None, said: str
) -> None:
    config = BrokerConfig(
        authentication_enabled=True,
        init_authentication_user='{"username":"admin","password":"right"}',
        inner_client_credentials='{"accessKey":"admin","secretKey":"right"}',
    )
    async with (
        cluster(tmp_path, config=config) as given,
        Producer("Shop", given.names, credentials=credentials) as producer,
    ):
        with pytest.raises(SendFailed) as caught:
            await producer.send(Message("Orders", b"x"))
    assert len(caught.value.attempts) == 1
    assert said in str(caught.value)


class Attempts(SendHook):
    """Those that failed."""

    def __init__(self) -> None:
        self.failed = 0

    def after_send(self, context: SendContext) -> None:
        self.failed += context.error is not None


async def test_a_send_to_a_broker_that_is_away_uses_its_time(tmp_path: Path) -> None:
    attempts = Attempts()
    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names, ProducerSettings(send_timeout=60), hooks=[attempts]) as producer,
    ):
        await producer.send(Message("Orders", b"1", sharding_key="a"))
        await given.stop_broker()
        sending = asyncio.create_task(producer.send(Message("Orders", b"2", sharding_key="a")))
        await until(lambda: attempts.failed)
        await given.start_broker()
        receipt = await sending
    assert receipt.attempts == attempts.failed + 1


def test_pauses_before_the_same_broker_fill_the_time() -> None:
    away = [Attempt("a", "a:1", 0.0, ConnectFailed("a:1", "refused"))]
    slow = [Attempt("a", "a:1", 0.0, TimeoutError())]
    assert (_pause(away, 2, 2, 3.0), _pause(away, 3, 2, 2.0)) == (1.0, 1.0)
    assert (_pause(away, 2, 2, -1.0), _pause(away, 2, 2, 3000.0)) == (0.0, 5.0)
    assert (_pause(slow, 2, 2, 3.0), _pause(slow, 3, 2, 0.01)) == (0.05, 0.01)


def test_a_broker_in_trouble_is_named_once_and_then_seldom(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock, logger = FakeClock(), logging.getLogger("troubled")
    troubles = TroubleLog(clock.monotonic)
    troubles.works(logger, "a", "a pull failed")
    for _ in range(60):
        for queue in range(8):
            troubles.failed(logger, "a", "a pull failed", f"queue={queue}", "refused")
        clock.advance(seconds=1)
    troubles.works(logger, "a", "a pull failed")
    troubles.failed(logger, "a", "a pull failed", "queue=0", "refused")
    assert [record.getMessage() for record in caplog.records] == [
        "a pull failed broker=a queue=0 reason=refused",
        "a pull failed broker=a queue=0 reason=refused (81 failures within 10 s)",
        "a pull failed broker=a queue=0 reason=refused (241 failures within 30 s)",
        "broker a answers again after 480 failures within 60 s",
        "a pull failed broker=a queue=0 reason=refused",
    ]


async def test_a_consumer_whose_broker_goes_away_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer("Billing", given.names, PushConsumerSettings(consume_from=FIRST, persist_interval=0.1))
        consumer.subscribe("Orders", lambda message: got.append(message.body))
        await producer.send(Message("Orders", b"1"))
        async with consumer:
            await until(lambda: got == [b"1"])
            await given.stop_broker()
            failed = "a pull failed, will be tried again broker=broker-a"
            await until(lambda: consumer._instance.troubles._of and _failures(consumer) > 8, "all queues failed, twice")
            await given.start_broker()
            await until(lambda: not consumer._instance.troubles._of, "it answers again")
            await producer.send(Message("Orders", b"2"))
            await until(lambda: len(got) == 2)
    assert sum(failed in record.getMessage() for record in caplog.records) == 1


def _failures(consumer: PushConsumer) -> int:
    return max(trouble.failures for trouble in consumer._instance.troubles._of.values())
