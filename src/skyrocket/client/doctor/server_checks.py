"""Name servers and brokers: are they there, do they agree, are they well?"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from skyrocket.client.doctor.facts import BrokerFacts, ClusterFacts
from skyrocket.client.doctor.finding import Finding, error, note, warning
from skyrocket.model.permission import PERM_WRITE
from skyrocket.model.words import said_of

_SKEW_SECONDS: Final = 5.0
_FULL_RATIO: Final = 0.9
_BEHIND_BYTES: Final = 16 << 20
_TIMER_SECONDS: Final = 10
_WAIT_MS: Final = 200
_HOUR_MS: Final = 3_600_000
_DEFAULT_PASSWORDS: Final = frozenset({"12345678", "rocketmq", "password", "admin", "123456"})
# What a slave does by itself or will do as a master; the rest may well differ.
_SHARED_SETTINGS: Final = ("fileReservedTime", "deleteWhen", "messageDelayLevel", "maxMessageSize")
_LEDGER: Final = "enableDLegerCommitLog"  # it has connections of its own
_LOOPBACK: Final = ("127.", "localhost", "[::1]")
_NOWHERE: Final = ("0.0.0.0:", "[::]:")
_JUST_STARTED_MS: Final = 60_000
_RUNTIME: Final = re.compile(r"(\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds")


def name_servers(facts: ClusterFacts) -> Iterator[Finding]:
    """Reachable, and of one mind."""
    for each in facts.name_servers:
        if each.problem is not None and each.is_refusal:
            remedy = "give the address of a name server, whose usual port is 9876"
            what = "it is not a name server, but a broker or a proxy: {problem}"
            yield error("name-server-down", each.address, what, remedy, problem=each.problem)
        elif each.problem is not None:
            remedy = "start it, open the port, or leave it out of the list"
            what = "it does not answer: {problem}"
            yield error(
                "name-server-down", each.address, what, _tls_remedy(each.problem) or remedy, problem=each.problem
            )
    known = {
        each.address: {(name, number) for name, data in each.cluster.brokers.items() for number in data.addresses}
        for each in facts.name_servers
        if each.cluster is not None
    }
    everywhere = set().union(*known.values()) if known else set()
    for address, brokers in known.items():
        for name, number in sorted(everywhere - brokers):
            yield error(
                "name-servers-differ",
                address,
                "it does not know broker {name} (id {number}), which another name server does",
                "check namesrvAddr of {name}: it must list all name servers; and that {name} reaches {where}",
                name=name,
                number=number,
            )
    if known and not everywhere:
        remedy = "start a broker with namesrvAddr set to these name servers"
        yield error("no-brokers", ", ".join(known), "no broker is registered", remedy)


def twins(facts: ClusterFacts) -> Iterator[Finding]:
    """A name and an id belong to one process: of two, name servers tell the one that registered last."""
    places: dict[tuple[str, int], set[str]] = {}
    for broker in facts.brokers:
        places.setdefault((broker.place.broker_name, broker.place.broker_id), set()).add(broker.place.address)
    for (name, number), addresses in sorted(places.items()):
        if len(addresses) > 1:
            told = ", ".join(sorted(addresses))
            remedy = "give one of them another brokerName or brokerId; if only its address changed, wait two minutes"
            what = "id {number} is at {told}: clients find now one, now the other"
            yield error("broker-twice", name, what, remedy, number=number, told=told)


def reachable(facts: ClusterFacts) -> Iterator[Finding]:
    """The address that a broker tells clients must be one that they reach."""
    for broker in facts.brokers:
        if broker.problem is None:
            continue
        if broker.is_refusal:
            remedy = "give an account that may ask brokers: --access-key, --secret-key"
            yield error("no-rights", broker.place, "it tells nothing: {problem}", remedy, problem=broker.problem)
        else:
            remedy = "start the broker; or set brokerIP1 to an address that clients reach (and open its port)"
            yield error(
                "broker-unreachable",
                broker.place,
                "name servers send clients there, but from here nobody answers: {problem}",
                _tls_remedy(broker.problem) or remedy,
                problem=broker.problem,
            )
    told_by = [each.address for each in facts.name_servers if each.cluster is not None]
    remote = any(not address.startswith(_LOOPBACK) for address in told_by)
    for broker in facts.answering:
        remedy = "set brokerIP1 to an address that clients elsewhere reach"
        if broker.place.address.startswith(_NOWHERE):
            what = "clients are told an address that is no machine: each takes its own for it"
            yield error("loopback-address", broker.place, what, remedy)
        elif remote and broker.place.address.startswith(_LOOPBACK):
            yield warning("loopback-address", broker.place, "clients elsewhere are told a loopback address", remedy)


def _tls_remedy(problem: str) -> str:
    """For a server that runs and ends the connection; empty when that is not the problem."""
    if "TLS" not in problem and "certificate" not in problem:
        return ""
    return (
        "it runs, but the two do not agree on TLS: --tls, --tls-ca, --tls-cert here, tls.server.… there (the TLS guide)"
    )


def masters(facts: ClusterFacts) -> Iterator[Finding]:
    """Every broker name has one."""
    names = {broker.place.broker_name for broker in facts.brokers}
    with_master = {broker.place.broker_name for broker in facts.masters}
    for name in sorted(names - with_master):
        remedy = "start the master, or let a controller elect one; until then nothing is written there"
        yield error("no-master", name, "only slaves are registered", remedy)


def disks(facts: ClusterFacts) -> Iterator[Finding]:
    """Room, and the retention that was promised."""
    for broker in facts.answering:
        ratio, limit = broker.number("commitLogDiskRatio"), broker.setting("diskMaxUsedSpaceRatio", 75) / 100
        if ratio >= max(_FULL_RATIO, limit):
            remedy = "add room, shorten fileReservedTime, or `skyrocket broker clean --logs`"
            yield error(
                "disk-full",
                broker.place,
                "the disk of its log is {ratio:.0%} full: writes are refused soon",
                remedy,
                ratio=ratio,
            )
        elif ratio >= limit:
            yield warning(
                "disk-filling",
                broker.place,
                "the disk of its log is {ratio:.0%} full, more than diskMaxUsedSpaceRatio {limit:.0%}: logs are "
                "deleted before their time",
                "add room, or shorten fileReservedTime so that it is a decision",
                ratio=ratio,
                limit=limit,
            )
        yield from _retention(broker, facts.now_ms)


def _retention(broker: BrokerFacts, now_ms: int) -> Iterator[Finding]:
    promised_ms = broker.setting("fileReservedTime", 72) * _HOUR_MS
    oldest_ms, up_since = broker.number("earliestMessageTimeStamp"), broker.number("bootTimestamp")
    was_deleted = broker.number("commitLogMinOffset") > 0
    if was_deleted and oldest_ms > 0 and up_since > 0 and now_ms - up_since > promised_ms:
        kept_ms = now_ms - oldest_ms
        if kept_ms < promised_ms * 0.9:
            yield warning(
                "retention-broken",
                broker.place,
                "its oldest message is {kept:.1f} h old, but fileReservedTime promises {promised} h",
                "add disk: logs are deleted early when it fills",
                kept=kept_ms / _HOUR_MS,
                promised=promised_ms // _HOUR_MS,
            )


def replication(facts: ClusterFacts) -> Iterator[Finding]:
    """Slaves follow."""
    for broker in facts.masters:
        role = broker.settings.get("brokerRole", "")
        if broker.ha is None:
            continue
        if role == "SYNC_MASTER" and not broker.ha.connections:
            remedy = "start its slave; senders wait for it and hear SLAVE_NOT_AVAILABLE"
            yield error("slave-missing", broker.place, "it is a SYNC_MASTER without a slave", remedy)
        for slave in broker.ha.connections:
            if not slave.in_sync or slave.lag_bytes > _BEHIND_BYTES:
                yield warning(
                    "slave-behind",
                    broker.place,
                    "slave {address} is {lag_bytes:,} bytes behind",
                    "look at the slave's disk and network; it cannot take over without losing messages",
                    address=slave.address,
                    lag_bytes=slave.lag_bytes,
                )
        yield from _unconnected_slaves(facts, broker)


def _unconnected_slaves(facts: ClusterFacts, master: BrokerFacts) -> Iterator[Finding]:
    """Slaves that name servers know and the master does not: a port that is closed, an address that is wrong."""
    name = master.place.broker_name
    slaves = [each for each in facts.answering if each.place.broker_name == name and not each.place.is_master]
    boots = [each.number("bootTimestamp") for each in (master, *slaves)]
    missing = len(slaves) - len(master.ha.connections if master.ha else ())
    if missing <= 0 or facts.now_ms - max(boots) < _JUST_STARTED_MS or master.settings.get(_LEDGER) == "true":
        return
    yield warning(
        "slave-behind",
        master.place,
        said_of(
            missing,
            "{n:,} slave is registered, but gets nothing from it",
            "{n:,} slaves are registered, but get nothing from it",
        ),
        "open haListenPort {port} of {where} for them, and see that its brokerIP2 is an address that they reach",
        port=master.setting("haListenPort", 0) or master.setting("listenPort", 10911) + 1,  # ours: 0 is the next one
    )


def slaves(facts: ClusterFacts) -> Iterator[Finding]:
    """A slave that takes over should keep the promises of its master."""
    of_masters = {broker.place.broker_name: broker for broker in facts.answering if broker.place.is_master}
    for broker in facts.answering:
        master = of_masters.get(broker.place.broker_name)
        if master is None or broker.place.is_master:
            continue
        for key in _SHARED_SETTINGS:
            ours, theirs = broker.settings.get(key), master.settings.get(key)
            if ours is not None and theirs is not None and ours != theirs:
                remedy = "`skyrocket config set {key}={theirs} --broker {address}`, or change the master"
                what = "{key} is {ours}, and {theirs} at its master"
                values = {"key": key, "ours": ours, "theirs": theirs, "address": broker.place.address}
                yield warning("slave-settings-differ", broker.place, what, remedy, **values)


def load(facts: ClusterFacts) -> Iterator[Finding]:
    """Requests and timers that wait."""
    for broker in facts.answering:
        waits = broker.number("sendThreadPoolQueueHeadWaitTimeMills")
        if waits > _WAIT_MS:
            remedy = "send more slowly, add brokers, or look at its disk"
            yield warning("overloaded", broker.place, "sends wait {waits:.0f} ms for their turn", remedy, waits=waits)
        unseen = broker.number("dispatchBehindBytes")
        if unseen > _BEHIND_BYTES:
            what = "its queues are {unseen:,.0f} bytes behind its log"
            remedy = "look at its disk and its load: consumers get what is stored only once its queues have it"
            yield warning("queues-behind", broker.place, what, remedy, unseen=unseen)
        behind = broker.number("timerReadBehind")
        if behind > _TIMER_SECONDS and broker.place.is_master:  # a slave takes over where its master is, now and then
            remedy = "look at its disk and its load: delayed messages come late"
            yield warning("timer-behind", broker.place, "its timer is {behind:.0f} s behind", remedy, behind=behind)


def clocks(facts: ClusterFacts) -> Iterator[Finding]:
    """A broker tells since when it runs and for how long: together that is its clock."""
    for broker in facts.answering:
        match = _RUNTIME.search(broker.runtime.get("runtime", ""))
        started = broker.number("bootTimestamp")
        if match is None or started <= 0:
            continue
        days, hours, minutes, seconds = map(int, match.groups())
        told = started / 1000 + ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        skew = _skew(told, broker.asked_at_ms / 1000, max(broker.asked_at_ms, broker.answered_at_ms) / 1000)
        if abs(skew) > _SKEW_SECONDS:
            yield warning(
                "clock-skew",
                broker.place,
                "its clock is {skew:.0f} s ahead of ours" if skew > 0 else "its clock is {skew:.0f} s behind ours",
                "let a time service set the clocks: retention, delays and lag in seconds depend on them",
                skew=abs(skew),
            )


def _skew(told: float, asked: float, answered: float) -> float:
    """How far a clock is ahead of ours at least; whole seconds are told, at some time between question and answer."""
    return max(told - answered, 0.0) or min(told + 1 - asked, 0.0)


def settings(facts: ClusterFacts) -> Iterator[Finding]:
    """Settings that surprise."""
    for broker in facts.answering:
        if broker.settings.get("autoCreateTopicEnable") == "true" and broker.place.is_master:
            remedy = "in production set autoCreateTopicEnable=false: a misspelt name becomes a topic"
            yield note("auto-create-topics", broker.place, "topics are created by the first send", remedy)
        permission = broker.setting("brokerPermission", 6)
        if not permission & PERM_WRITE and broker.place.is_master:
            remedy = "`skyrocket config set brokerPermission=6 --broker …` when it shall take messages again"
            yield error(
                "broker-not-writable", broker.place, "brokerPermission is {permission}", remedy, permission=permission
            )
        for user in broker.users:
            if user.password and (user.password in _DEFAULT_PASSWORDS or user.password == user.username):
                remedy = "`skyrocket user update {username} --password -`"
                yield error(
                    "default-password",
                    broker.place,
                    "user {username} has a well-known password",
                    remedy,
                    username=user.username,
                )
    versions = {broker.runtime.get("brokerVersionDesc") for broker in facts.answering}
    if len(versions) > 1:
        known = ", ".join(sorted(str(each) for each in versions))
        yield note("versions-differ", "brokers", "brokers are of {known}", "finish the upgrade", known=known)


def transactions(facts: ClusterFacts) -> Iterator[Finding]:
    """Halves that nobody ends."""
    checked_ms = max((broker.setting("transactionCheckInterval", 30_000) for broker in facts.answering), default=30_000)
    old = [each for each in facts.transactions if each.age_ms > 10 * checked_ms]
    if old:
        groups = ", ".join(sorted({each.producer_group for each in old}))
        yield warning(
            "transactions-open",
            groups,
            said_of(
                len(old),
                "{n:,} transaction has no end, the oldest for {minutes:.0f} min",
                "{n:,} transactions have no end, the oldest for {minutes:.0f} min",
                minutes=max(each.age_ms for each in old) / 60000,
            ),
            "start producers of the group that answer checks, or `skyrocket transactions list`",
        )


CHECKS: Final[tuple[Callable[[ClusterFacts], Iterator[Finding]], ...]] = (
    name_servers,
    twins,
    reachable,
    masters,
    disks,
    replication,
    slaves,
    load,
    clocks,
    settings,
    transactions,
)
