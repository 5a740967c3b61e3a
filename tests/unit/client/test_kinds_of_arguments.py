"""Arguments of the wrong kind are refused where they were written, with the next step, not far from it."""

from collections.abc import Callable
from typing import Any

import pytest

from skyrocket import (
    Acl,
    ClientSettings,
    Message,
    Middleware,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    publish,
    reply,
)
from skyrocket.client import IllegalName, IllegalSubscription, LitePullConsumer, SimpleConsumer, WrongUse
from skyrocket.client.core.message import property_text
from skyrocket.errors import MessageRefused

NAMES = "127.0.0.1:9876"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Producer("Shop", 9876), "name_servers=9876: give 'host:9876', or a list of such texts"),  # type: ignore[arg-type]
        (lambda: Producer("Shop", [9876]), "name_servers=[9876]: give 'host:9876', or a list"),  # type: ignore[list-item]
        (lambda: Producer(5, NAMES), "the group is 5: give its name as text"),  # type: ignore[arg-type]
        (
            lambda: Producer("Shop", NAMES, {"retries": 3}),  # type: ignore[arg-type]
            "settings is dict, not ProducerSettings: write settings=ProducerSettings(…)",
        ),
        (
            lambda: PushConsumer("Billing", NAMES, {"max_concurrency": 3}),  # type: ignore[arg-type]
            "settings is dict, not PushConsumerSettings: write settings=PushConsumerSettings(…)",
        ),
        (lambda: LitePullConsumer("Billing", NAMES, {}), "settings is dict, not LitePullSettings"),  # type: ignore[arg-type]
        (
            lambda: SimpleConsumer("Billing", NAMES, {}, subscription={"T": "*"}),  # type: ignore[arg-type]
            "settings is dict, not SimpleConsumerSettings",
        ),
        (lambda: Producer("Shop", client=NAMES), "client is str, not ClientSettings: write client="),  # type: ignore[arg-type]
        (
            lambda: Producer("Shop", NAMES, credentials=("user", "secret")),  # type: ignore[arg-type]
            "credentials is tuple, not Acl: write credentials=Acl(…)",
        ),
        (lambda: Producer("Shop", NAMES).use(Middleware), "use(Middleware): give an object, as use(Middleware())"),  # type: ignore[arg-type]
        (lambda: PushConsumer("Billing", NAMES).use(print), "give a Middleware, an object with `consume` and `send`"),  # type: ignore[arg-type]
    ],
)
def test_what_a_member_is_made_with(make: Callable[[], object], said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        make()
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_name_servers_of_a_list_may_be_joined_by_commas_too() -> None:
    assert ClientSettings("a:1, b:2;c:3").addresses() == ("a:1", "b:2", "c:3")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tags": 5}, "tags=5: it is one text, give tags='5'"),
        ({"tags": ["paid", "new"]}, "tags=['paid', 'new']: it is one text, give tags='paid'"),
        ({"sharding_key": 7}, "sharding_key=7: it is one text, give sharding_key='7'"),
        ({"sharding_key": ""}, "sharding_key='' is blank: give a text, or leave it out"),
        ({"deliver_at": "2027-01-01"}, "deliver_at='2027-01-01': give a datetime; delay= takes seconds and '5m'"),
    ],
)
def test_fields_of_a_message(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageRefused) as caught:
        property_text(Message("Orders", b"x", **fields), "U")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("send", "said"),
    [
        (lambda p: p.send("Orders", "x", timeout="3"), "timeout='3' is of the wrong kind: give a number of seconds"),
        (lambda p: p.send("Orders", "x", retries=-1), "retries=-1 is of the wrong kind: give a whole number, 0 for"),
        (lambda p: p.send("Orders", "x", queue=3), "queue=3 is no MessageQueue: `await producer.queues(topic)` lists"),
        (lambda p: p.send(Message("Orders", b"x"), tags="paid"), "send takes a Message, or a topic with a body and"),
        (lambda p: p.send_batch(Message("Orders", b"x")), "takes a list of messages, not Message: write send_batch(["),
        (lambda p: p.send_batch(["x"]), "send_batch takes a Message, not str: Message.of('Orders', value) makes one"),
        (lambda p: p.send_oneway("Orders"), "send_oneway takes a Message, not str"),
        (lambda p: p.enqueue("Orders"), "enqueue takes a Message, not str"),
        (lambda p: p.request("Orders"), "request takes a Message, not str"),
        (lambda p: p.request(Message("Orders", b"x"), timeout="1"), "timeout='1' is of the wrong kind"),
    ],
)
async def test_what_is_chosen_for_one_send(send: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        await send(Producer("Shop", NAMES))
    assert said in str(caught.value)


def test_a_decorator_without_its_topic_says_so() -> None:
    consumer = PushConsumer("Billing", NAMES, PushConsumerSettings(), credentials=Acl("user", "secret"))
    with pytest.raises(IllegalSubscription, match=r"write @consumer.on\('Orders'\) above lost"):

        @consumer.on  # type: ignore[call-overload]
        async def lost(message: object) -> None: ...

    with pytest.raises(IllegalName, match=r"the topic is <function .*: give its name as text"):
        publish(lambda message: None)  # type: ignore[arg-type]


def test_a_result_has_one_place_to_go() -> None:
    for twice in (publish("A"), publish("B"), reply):
        with pytest.raises(IllegalSubscription, match="has two of @publish and @reply: its result goes to one place"):
            twice(reply(lambda message: "x"))
