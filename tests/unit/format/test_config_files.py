"""The JSON files of broker, name server and client: golden bytes, defaults, unknown fields, damage."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import WrongShape
from skyrocket.format.config_files import (
    CONSUMER_FILTERS,
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    KV_CONFIG,
    ORDER_INFOS,
    POP,
    PULL,
    QUEUE_MAPPINGS,
    REQUEST_MODES,
    SUBSCRIPTION_GROUPS,
    TIMERS,
    TOPICS,
    TRANSACTIONS,
    BloomPositions,
    ConsumerFilter,
    ConsumerFilters,
    ConsumerOffsets,
    DelayOffsets,
    MappingItem,
    Metric,
    OrderInfo,
    OrderInfos,
    QueueMappings,
    RequestMode,
    SubscriptionGroups,
    TopicFilters,
    TopicQueueMapping,
    Topics,
    offset_key,
    split_offset_key,
)
from skyrocket.model.data_version import DataVersion
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.model.permission import PERM_INHERIT, PERM_READ, PERM_WRITE, is_valid_permission, permission_text
from skyrocket.model.subscription_group import (
    EXPONENTIAL,
    CustomizedRetry,
    ExponentialRetry,
    FixedSubscription,
    GroupRetryPolicy,
    SubscriptionGroup,
)
from skyrocket.model.topic_config import MULTI_TAG, TopicConfig
from tests.golden_store import GOLDEN, GoldenStore

FILES: dict[str, Any] = {
    "topics.json": TOPICS,
    "subscriptionGroup.json": SUBSCRIPTION_GROUPS,
    "consumerOffset.json": CONSUMER_OFFSETS,
    "lmqConsumerOffset.json": CONSUMER_OFFSETS,
    "consumerFilter.json": CONSUMER_FILTERS,
    "delayOffset.json": DELAY_OFFSETS,
    "consumerOrderInfo.json": ORDER_INFOS,
    "messageRequestMode.json": REQUEST_MODES,
    "timermetrics": TIMERS,
    "transactionMetrics": TRANSACTIONS,
    "kvConfig.json": KV_CONFIG,
}
ONE_LINE = {"timermetrics", "transactionMetrics", "kvConfig.json"}
NOT_JSON = {"timercheck"}


def dialect_of(path: Path) -> Dialect:
    return {"4.9.7": Dialect.V4_9, "5.4.0": Dialect.V5_4}[path.relative_to(GOLDEN).parts[0]]


def codec(path: Path) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """decode and encode of a golden file, by its name and version."""
    name = path.name.removesuffix(".bak")
    module = FILES[name]
    return module.decode, module.encode if name in ONE_LINE else partial(module.encode, dialect=dialect_of(path))


def golden_files_of(pattern: str) -> list[Path]:
    return sorted(path for path in GOLDEN.glob(pattern) if path.is_file() and path.name not in NOT_JSON)


EVERY_FILE = golden_files_of("*/*/config/*") + golden_files_of("*/*/namesrv/*")


def golden(version: str, name: str, store: str = "clean") -> bytes:
    return (GOLDEN / version / store / "config" / name).read_bytes()


# -- golden files ------------------------------------------------------------------------------------


@pytest.mark.requirement("D002", "A068", "C132")
@pytest.mark.parametrize("path", EVERY_FILE, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_file_of_rocketmq_is_read_and_written_byte_for_byte(path: Path) -> None:
    decode, encode = codec(path)
    content = decode(path.read_bytes())
    assert encode(content) == path.read_bytes()
    assert_nothing_is_unknown(content)


def assert_nothing_is_unknown(content: Any) -> None:
    """Every field that RocketMQ writes has a name of ours: nothing came through as merely kept."""
    if isinstance(content, dict):
        for element in content.values():
            assert_nothing_is_unknown(element)
    elif hasattr(content, "__dataclass_fields__"):
        assert content.unknown == {}
        for name in content.__dataclass_fields__:
            assert_nothing_is_unknown(getattr(content, name))


def test_the_golden_files_show_every_kind_of_file_but_static_topics() -> None:
    assert {path.name.removesuffix(".bak") for path in EVERY_FILE} == set(FILES)


def test_the_layout_alone_is_byte_identical_too() -> None:
    for path in [*EVERY_FILE, *golden_files_of("*/*/client/**/*")]:
        if path.name.removesuffix(".bak") not in ONE_LINE:
            assert dumps(loads(path.read_bytes()), dialect_of(path)) == path.read_bytes()


@pytest.mark.requirement("D002")
def test_topics_of_5_4() -> None:
    content = TOPICS.decode(golden("5.4.0", "topics.json"))
    assert content.data_version == DataVersion(state_version=0, counter=32, timestamp=1794794198136)
    assert content.topics["TopicReadOnly"] == TopicConfig("TopicReadOnly", 2, 2, permission=PERM_READ)
    assert content.topics["TopicFifo"].message_type == "FIFO"
    assert content.topics["TopicTest"].message_type == "NORMAL"
    assert content.topics["DefaultCluster"].is_template


@pytest.mark.requirement("D002")
def test_groups_of_both_versions_have_the_same_defaults() -> None:
    old = SUBSCRIPTION_GROUPS.decode(golden("4.9.7", "subscriptionGroup.json"))
    new = SUBSCRIPTION_GROUPS.decode(golden("5.4.0", "subscriptionGroup.json"))
    assert old.groups["GroupReset"] == new.groups["GroupReset"] == SubscriptionGroup("GroupReset")


@pytest.mark.requirement("A068", "D002")
def test_consumer_offsets_are_a_map_of_topic_and_group_to_queue_to_offset() -> None:
    content = CONSUMER_OFFSETS.decode(golden("4.9.7", "consumerOffset.json"))
    assert content.offsets["TopicTest@GroupOne"] == {0: 67, 1: 76, 2: 41, 3: 53}
    assert content.data_version == DataVersion()


@pytest.mark.requirement("C132", "D002")
def test_delay_offsets_are_a_map_of_level_to_offset() -> None:
    content = DELAY_OFFSETS.decode(golden("4.9.7", "delayOffset.json"))
    assert content.offsets == {1: 17, 2: 4, 3: 7, 4: 4, 5: 1}


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_a_filter_whose_group_is_gone_is_dead(version: str) -> None:
    content = CONSUMER_FILTERS.decode(golden(version, "consumerFilter.json"))
    stored = content.topics["TopicFilter"].groups["GroupFilter"]
    assert stored.is_dead
    assert stored.bloom is not None
    assert (stored.bloom.bits, len(stored.bloom.positions)) == (112, 3)


def test_transaction_counts_may_be_below_zero() -> None:
    content = TRANSACTIONS.decode(golden("5.4.0", "transactionMetrics"))
    assert content.topics == {"TopicTx": Metric(-36, 1794794145223)}


def test_the_store_archive_holds_the_same_files(golden: GoldenStore, golden_files: Any) -> None:
    inside = {name: data for name, data in golden_files.folder("config") if name not in NOT_JSON}
    assert inside == {path.name: path.read_bytes() for path in (golden.path / "config").iterdir()}


# -- the two versions --------------------------------------------------------------------------------


def test_a_4_9_file_written_for_5_4_gains_the_newer_fields_with_their_defaults() -> None:
    content = TOPICS.decode(b'{"topicConfigTable":{"T":{"topicName":"T"}}}')
    written: Any = loads(TOPICS.encode(content, Dialect.V5_4))
    assert written["topicConfigTable"]["T"]["attributes"] == {}
    assert written["dataVersion"] == {"counter": 0, "stateVersion": 0, "timestamp": 0}
    assert TOPICS.decode(TOPICS.encode(content, Dialect.V5_4)) == content


def test_newer_fields_that_say_something_are_kept_when_writing_for_4_9() -> None:
    content = Topics(DataVersion(3, 4, 5), {"T": TopicConfig("T", attributes={"message.type": "FIFO"})})
    assert TOPICS.decode(TOPICS.encode(content, Dialect.V4_9)) == content


def test_the_compact_form_for_the_wire_has_the_fields_of_5_x() -> None:
    content = DelayOffsets(DataVersion(0, 7, 9), {1: 10, 2: 0})
    expected = b'{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":9},"offsetTable":{1:10,2:0}}'
    assert DELAY_OFFSETS.encode(content, Dialect.COMPACT) == expected


# -- defaults, leniency, unknown fields --------------------------------------------------------------


@pytest.mark.parametrize("module", {id(module): module for module in [*FILES.values(), QUEUE_MAPPINGS]}.values())
def test_an_empty_object_is_a_file_of_defaults(module: Any) -> None:
    content = module.decode(b"{}")
    assert content == type(content)()


def test_missing_and_null_fields_have_the_defaults_of_rocketmq() -> None:
    content = TOPICS.decode(b'{"topicConfigTable":{"T":{"topicName":"T","perm":null}},"dataVersion":null}')
    topic = content.topics["T"]
    assert (topic.read_queues, topic.write_queues, topic.permission, topic.filter_type) == (16, 16, 6, "SINGLE_TAG")
    assert (topic.sys_flag, topic.ordered, topic.attributes, content.data_version) == (0, False, {}, DataVersion())


def test_reading_is_as_lenient_as_java() -> None:
    content = TOPICS.decode(
        b"""{'topicConfigTable':{'T':{'topicName':7,'perm':'4','order':'TRUE','readQueueNums':8.0,
        'topicFilterType':'multi_tag','attributes':{'reserve.time':3,'x':true},},
        'U':{'topicName':'U','order':1,'topicFilterType':1},'V':{'topicName':'V','topicFilterType':'NEW'},'N':null}}"""
    )
    assert content.topics == {
        "T": TopicConfig(
            "7", 8, permission=4, ordered=True, filter_type=MULTI_TAG, attributes={"reserve.time": "3", "x": "true"}
        ),
        "U": TopicConfig("U", ordered=True, filter_type=MULTI_TAG),
        "V": TopicConfig("V"),
    }


def test_quoted_queue_numbers_are_read() -> None:
    assert CONSUMER_OFFSETS.decode(b'{"offsetTable":{"T@G":{"0":12,"1":"7"}}}').offsets == {"T@G": {0: 12, 1: 7}}


@pytest.mark.parametrize("dialect", Dialect)
def test_unknown_fields_are_kept_and_written_back_in_their_place(dialect: Dialect) -> None:
    data = b'{"aNew":{0:[1]},"dataVersion":{"zNew":1},"topicConfigTable":{"T":{"nNew":"x","topicName":"T"}}}'
    content = TOPICS.decode(data)
    written: Any = loads(TOPICS.encode(content, dialect))
    assert list(written) == ["aNew", "dataVersion", "topicConfigTable"]
    assert written["aNew"] == {0: [1]}
    assert written["dataVersion"]["zNew"] == 1
    assert sorted(written["topicConfigTable"]["T"]) == list(written["topicConfigTable"]["T"])
    assert written["topicConfigTable"]["T"]["nNew"] == "x"


def test_the_topics_of_each_group_follow_the_offsets_and_keep_their_order() -> None:
    offsets = {key: {0: 1} for key in ("B@G", "A@G", "C@G", "X@New", "no key")}
    content = ConsumerOffsets(offsets=offsets, topics_of_group={"Gone": ["A"], "G": ["C", "Old", "B"]})
    written: Any = loads(CONSUMER_OFFSETS.encode(content, Dialect.V5_4))
    assert list(written["groupTopicMap"].items()) == [("G", ["C", "B", "A"]), ("New", ["X"])]


def test_offset_keys() -> None:
    assert split_offset_key(offset_key("%RETRY%g", "g")) == ("%RETRY%g", "g")
    assert split_offset_key("a@b@c") is None


def test_a_live_filter_is_not_dead() -> None:
    live = ConsumerFilter("g", "t", "a > 5", born_time=10, dead_time=0)
    content = ConsumerFilters({"t": TopicFilters("t", {"g": live})})
    written: Any = loads(CONSUMER_FILTERS.encode(content, Dialect.V5_4))
    assert written["filterDataByTopic"]["t"]["groupFilterData"]["g"]["dead"] is False


def test_offsets_in_hand_are_stored_as_distances_from_the_first() -> None:
    info = OrderInfo(5, 60000, [100, 101, 105], {101: 2}, {100: 9}, 4, 2, "attempt")
    content = OrderInfos(table={"T@G": {0: info}})
    text = (
        b'{"orderedConsumptionLevel":"QUEUE","table":{"T@G":{0:{"a":"attempt","cm":2,"i":60000,"l":4,"o":[100,1,5],'
        b'"oc":{101:2},"ot":{100:9},"popTime":5}}}}'
    )
    assert ORDER_INFOS.encode(content, Dialect.COMPACT) == text
    assert ORDER_INFOS.decode(text) == content


def test_a_static_topic() -> None:
    text = (
        b'{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":2},"topicQueueMappingInfoMap":{"TopicA":'
        b'{"bname":"broker-a","currIdMap":{},"dirty":false,"epoch":1700000000000,"hostedQueues":{0:[{"bname":"broker-a"'
        b',"endOffset":-1,"gen":0,"logicOffset":0,"queueId":1,"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1}]},'
        b'"scope":"__global__","topic":"TopicA","totalQueues":8}}}'
    )
    item = MappingItem(queue_id=1, broker_name="broker-a")
    mapping = TopicQueueMapping(
        "TopicA", total_queues=8, broker_name="broker-a", epoch=1700000000000, hosted_queues={0: [item]}
    )
    content = QueueMappings(DataVersion(0, 1, 2), {"TopicA": mapping})
    assert QUEUE_MAPPINGS.decode(text) == content
    assert QUEUE_MAPPINGS.encode(content, Dialect.COMPACT) == text


def test_a_group_with_everything() -> None:
    group = SubscriptionGroup(
        "g",
        retry_policy=GroupRetryPolicy(EXPONENTIAL, CustomizedRetry((1, 2)), ExponentialRetry(1, 2, 3)),
        subscriptions=(FixedSubscription("t", "SQL92", "a > 5", 7),),
        attributes={"priority.factor": "50"},
    )
    content = SubscriptionGroups(groups={"g": group}, forbidden={"g": {"t": 3}})
    for dialect in Dialect:
        assert SUBSCRIPTION_GROUPS.decode(SUBSCRIPTION_GROUPS.encode(content, dialect)) == content


def test_a_light_queue_file_has_both_tables() -> None:
    content = ConsumerOffsets(offsets={"T@G": {0: 1}}, topics_of_group={"G": ["T"]}, light_offsets={"%LMQ%x@G": 5})
    assert CONSUMER_OFFSETS.decode(CONSUMER_OFFSETS.encode(content, Dialect.V5_4)) == content


def test_request_modes() -> None:
    content = REQUEST_MODES.decode(b'{"messageRequestModeMap":{"t":{"g":{"topic":"t","consumerGroup":"g"}}}}')
    assert content.modes["t"]["g"] == RequestMode("t", "g", PULL, 0)
    assert REQUEST_MODES.decode(golden("5.4.0", "messageRequestMode.json")).modes["TopicPop"]["GroupPop"].mode == POP


# -- damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.requirement("D002")
def test_a_file_cut_at_any_byte_is_refused(name: str) -> None:
    data = min((path for path in EVERY_FILE if path.name == name), key=lambda path: path.stat().st_size).read_bytes()
    for end in range(len(data)):
        with pytest.raises(DataError):
            FILES[name].decode(data[:end])


@given(st.sampled_from([path for path in EVERY_FILE if path.stat().st_size < 3000]), st.data())
def test_a_damaged_file_gives_content_or_an_error_of_data(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:position] + data.draw(st.binary(min_size=1, max_size=4)) + whole[position + 1 :]
    decode, encode = codec(path)
    try:
        content = decode(damaged)
    except DataError:
        return
    encode(content)


@given(
    st.sampled_from([*FILES.values(), QUEUE_MAPPINGS]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text("a@0", max_size=2),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["T@G", 0, "topic", "offsetTable", "table", "o", "dataVersion"]), inner)
        ),
    ),
)
def test_json_of_any_other_shape_gives_content_or_an_error_of_data(module: Any, value: Any) -> None:
    with contextlib.suppress(DataError):
        module.decode(dumps(value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"topicConfigTable":{"T":{"perm":"x"}}}', "topicConfigTable.T.perm: expected a whole number, found 'x'"),
        ('{"topicConfigTable":{"T":{"perm":[1]}}}', "topicConfigTable.T.perm: expected a whole number, found [1]"),
        ('{"topicConfigTable":{"T":{"perm":true}}}', "topicConfigTable.T.perm: expected a whole number, found True"),
        ('{"topicConfigTable":{"T":{"order":"no"}}}', "topicConfigTable.T.order: expected true or false, found 'no'"),
        ('{"topicConfigTable":{"T":{}}}', "topicConfigTable.T: topicName is missing"),
        ('{"topicConfigTable":[]}', "topicConfigTable: expected an object, found []"),
        ('{"topicConfigTable":{"T":{"topicName":{}}}}', "topicConfigTable.T.topicName: expected text, found {}"),
        ('{"dataVersion":{"counter":18446744073709551615}}',
         "dataVersion.counter: expected a number of 64 bits, found 18446744073709551615"),
        ("null", "expected an object, found None"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_the_way_to_it(data: str, message: str) -> None:
    with pytest.raises(WrongShape) as caught:
        TOPICS.decode(data.encode())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("module", "data"),
    [
        (CONSUMER_OFFSETS, b'{"offsetTable":{"T@G":{"x":1}}}'),
        (CONSUMER_OFFSETS, b'{"groupTopicMap":{"G":[{}]}}'),
        (CONSUMER_OFFSETS, b'{"groupTopicMap":{"G":1}}'),
        (ORDER_INFOS, b'{"table":{"T@G":{0:{"o":7}}}}'),
    ],
)
def test_wrong_keys_and_elements_are_refused(module: Any, data: bytes) -> None:
    with pytest.raises(WrongShape):
        module.decode(data)


# -- round trips -------------------------------------------------------------------------------------

I64 = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VERSIONS = st.builds(DataVersion, I64, I64, I64)
CONTENTS = st.one_of(
    st.builds(
        Topics,
        VERSIONS,
        st.dictionaries(
            NAMES,
            st.builds(
                TopicConfig, NAMES, I64, I64, I64, ordered=st.booleans(), attributes=st.dictionaries(NAMES, NAMES)
            ),
        ),
    ).map(lambda content: (TOPICS, content)),
    st.builds(DelayOffsets, VERSIONS, st.dictionaries(I64, I64)).map(lambda content: (DELAY_OFFSETS, content)),
    st.builds(ConsumerOffsets, VERSIONS, st.dictionaries(NAMES, st.dictionaries(I64, I64))).map(
        lambda content: (CONSUMER_OFFSETS, content)
    ),
    st.builds(
        OrderInfos,
        table=st.dictionaries(
            NAMES,
            st.dictionaries(
                I64, st.builds(OrderInfo, I64, st.none() | I64, st.lists(st.integers(0, 1 << 62)), attempt_id=NAMES)
            ),
        ),
    ).map(lambda content: (ORDER_INFOS, content)),
    st.builds(
        ConsumerFilters,
        st.dictionaries(
            NAMES,
            st.builds(
                TopicFilters,
                NAMES,
                st.dictionaries(
                    NAMES,
                    st.builds(
                        ConsumerFilter,
                        NAMES,
                        NAMES,
                        NAMES,
                        NAMES,
                        I64,
                        I64,
                        I64,
                        st.none() | st.builds(BloomPositions, I64, st.lists(I64).map(tuple)),
                    ),
                ),
            ),
        ),
    ).map(lambda content: (CONSUMER_FILTERS, content)),
)


@given(CONTENTS, st.sampled_from(Dialect))
def test_content_is_read_back_as_it_was_written(pair: tuple[Any, Any], dialect: Dialect) -> None:
    module, content = pair
    read = module.decode(module.encode(content, dialect))
    if module is CONSUMER_OFFSETS:
        content = ConsumerOffsets(content.data_version, content.offsets, read.topics_of_group)
    assert read == content


# -- nouns -------------------------------------------------------------------------------------------


def test_data_versions_are_ordered_by_state_then_counter_then_time() -> None:
    versions = [DataVersion(0, 1, 9), DataVersion(0, 2, 1), DataVersion(0, 2, 2), DataVersion(1, 0, 0)]
    assert sorted([versions[2], versions[0], versions[3], versions[1]]) == versions


def test_a_change_counts_up_and_takes_the_time() -> None:
    assert DataVersion(1, 2, 3).next(now_ms=10) == DataVersion(1, 3, 10)


@pytest.mark.parametrize(("permission", "text"), [(0, "---"), (4, "R--"), (2, "-W-"), (6, "RW-"), (7, "RWX")])
def test_permissions_as_text(permission: int, text: str) -> None:
    assert permission_text(permission) == text
    assert is_valid_permission(permission)


def test_permission_bits() -> None:
    assert (PERM_READ, PERM_WRITE, PERM_INHERIT) == (4, 2, 1)
    assert not is_valid_permission(8)
    assert not is_valid_permission(-1)
    topic = TopicConfig("t", permission=PERM_WRITE)
    assert (topic.is_readable, topic.is_writable, topic.is_template) == (False, True, False)
    assert (topic.has_batch_queues, topic.cleanup_policy) == (False, "DELETE")


@pytest.mark.requirement("A045", "C132")
def test_the_standard_delay_levels_go_from_a_second_to_two_hours() -> None:
    assert StoreConfig().message_delay_levels == DEFAULT_DELAY_LEVELS
    levels = parse_delay_levels(DEFAULT_DELAY_LEVELS)
    assert len(levels) == 18
    assert (levels[0], levels[4], levels[15], levels[17]) == (1000, 60_000, 1_800_000, 7_200_000)


@pytest.mark.requirement("A045")
def test_delay_levels_can_be_set_in_seconds_minutes_hours_and_days() -> None:
    assert parse_delay_levels("2s 3m 4h 1d") == (2000, 180_000, 14_400_000, 86_400_000)
    with pytest.raises(ValueError, match="'5x' is not a delay level"):
        parse_delay_levels("1s 5x")


def test_retry_delays() -> None:
    assert [GroupRetryPolicy().next_delay_ms(n) for n in (-1, 0, 1, 15, 99)] == [10_000, 10_000, 30_000, 7.2e6, 7.2e6]
    assert [GroupRetryPolicy(EXPONENTIAL).next_delay_ms(n) for n in (-1, 0, 1, 99)] == [5000, 5000, 10_000, 7_200_000]
    assert CustomizedRetry((5,)).next_delay_ms(0) == 5
    assert CustomizedRetry(()).next_delay_ms(0) == 10_000
