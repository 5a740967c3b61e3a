"""What is the same as before is not read again."""

from skyrocket.namesrv.known_registrations import KnownRegistrations
from skyrocket.namesrv.route_table import BrokerKey
from skyrocket.protocol.bodies.registration import BrokerRegistration
from tests.unit.namesrv.samples import broker, registration, topic

KEY = broker().key
MANY = [f"Topic-{number}" for number in range(500)]


def body(*topics: object, written_at: int = 1, counter: int = 1) -> bytes:
    data = registration(*topics, counter=counter).encode()  # type: ignore[arg-type]
    version = b'"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":%d},"topicConfigTable"' % written_at
    return data.replace(b'"topicConfigTable"', version, 1)


async def decoded(known: KnownRegistrations, data: bytes, key: BrokerKey = KEY) -> BrokerRegistration:
    return await known.decode(key, data, compressed=False, requester_version=493, max_topics=1000)


async def test_a_registration_that_differs_only_in_its_time_is_the_same_object() -> None:
    known = KnownRegistrations({broker().key})
    first = await decoded(known, body(*MANY))
    assert set(first.table.topics) == set(MANY)
    assert await decoded(known, body(*MANY, written_at=2)) is first


async def test_any_other_difference_is_read() -> None:
    known = KnownRegistrations({broker().key})
    first = await decoded(known, body(*MANY))
    for data in (body(*MANY, counter=2), body(*MANY, "New"), body(*MANY[1:], topic(MANY[0], queues=9))):
        read = await decoded(known, data)
        assert read is not first
        assert read == BrokerRegistration.decode(data)
        first = read


async def test_brokers_do_not_share_and_those_that_went_are_forgotten() -> None:
    live = {broker("a").key}
    known = KnownRegistrations(live)
    first = await decoded(known, body(*MANY), broker("a").key)
    live.clear()
    assert await decoded(known, body(*MANY), broker("b").key) is not first
    assert await decoded(known, body(*MANY), broker("a").key) is not first


async def test_small_registrations_are_simply_read() -> None:
    known = KnownRegistrations({broker().key})
    assert await decoded(known, body("T", "U")) is not await decoded(known, body("T", "U"))
