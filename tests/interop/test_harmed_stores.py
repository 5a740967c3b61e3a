"""The same harm to two copies of a store: what we read from the one, and RocketMQ of its version from the other.

A record that RocketMQ still hands out, in its right queue with its right number and with none of its own bytes harmed,
must be handed out by us as well; or we refuse the store, or reads of that queue, with file, place and remedy. It makes
no difference whether the record lies before or behind the harm. A store that RocketMQ opens is refused as a whole only
when its log was harmed: queues, index and checkpoint can be made anew. The harms are every tenth of those
that tests/faults/test_random_damage.py does in its long mode, but those to live stores: RocketMQ is not running on
them.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from tests.faults.damaged_store import Damaged, Reading
from tests.faults.harmed_stores import LONG, MAKERS, Subject, Subjects, maker_of
from tests.faults.harness import check_refusal
from tests.faults.random_damage import Harm, harm
from tests.interop.apache import Apache
from tests.interop.rocketmq_on_harmed_stores import TheirReading, read_all

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

STEP = 10


@dataclass
class Comparison:
    """What both read, over many harms."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, subject: Subject, done: Harm, ours: Reading | None, theirs: TheirReading) -> None:
        """`ours` is None when we refused to open the store."""
        us, them = "we open" if ours is not None else "we refuse", "RocketMQ opens" if theirs.opened else "it refuses"
        self.outcomes[f"stores: {us}, {them}"] += 1
        if ours is None and theirs.opened and done.log_range is None:
            self.failures.append(f"{done}: we refuse, though the log is whole and RocketMQ opens the store")
        hit = subject.hit_by(done)
        for key, whole in subject.whole.queues.items():
            right = {
                place
                for number, place in theirs.queues.get(key, {}).items()
                if whole.get(number) == place and place not in hit
            }
            found = set(ours.queues.get(key, {}).values()) if ours is not None else set()
            refused = ours is None or key in ours.refused
            self.outcomes["records: both read"] += len(right & found)
            self.outcomes["records: only we read"] += len(found & set(whole.values()) - hit - right)
            self.outcomes["records: only RocketMQ reads, we refuse"] += len(right - found) if refused else 0
            if right - found and not refused:
                missing = sorted(right - found)
                self.failures.append(f"{done}: RocketMQ reads {len(missing)} of {key} that we do not: {missing[:5]}")


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return Subjects(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    "step", [pytest.param(STEP, marks=pytest.mark.slow, id="tenth"), pytest.param(STEP * 10, id="hundredth")]
)
@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_what_rocketmq_still_reads_of_a_harmed_store_we_read_or_refuse(
    subjects: Subjects, apache_of_version: Callable[[str], Apache], tmp_path: Path, version: str, step: int
) -> None:
    apache = apache_of_version(version)
    seeds = [seed for seed in range(0, LONG, step) if reader_of(maker_of(seed)) == version]
    copies: dict[int, tuple[Subject, Harm, Damaged, Reading | None]] = {}
    for seed in seeds:
        subject = subjects[maker_of(seed)]
        done = harm(subject.copy(tmp_path / f"ours-{seed}").root, seed)
        theirs = subject.copy(tmp_path / f"theirs-{seed}")
        assert harm(theirs.root, seed) == done
        copies[seed] = subject, done, theirs, read_ours(subject, tmp_path / f"ours-{seed}")
    readings = read_all(apache, [theirs for _, _, theirs, _ in copies.values()])
    comparison = Comparison()
    for subject, done, theirs, ours in copies.values():
        comparison.add(subject, done, ours, readings[theirs.root])
    print(f"\n{len(seeds)} harms, RocketMQ {version}")  # noqa: T201
    for what, count in sorted(comparison.outcomes.items()):
        print(f"  {count:7} {what}")  # noqa: T201
    assert seeds
    assert not comparison.failures, "\n".join(comparison.failures[:10])


def reader_of(maker: str) -> str | None:
    """Which RocketMQ reads the copies of a store; None for live ones."""
    if maker.endswith("live"):
        return None
    return "4.9.7" if maker.startswith("4.9.7") else "5.4.0"


def read_ours(subject: Subject, root: Path) -> Reading | None:
    damaged = Damaged(root, subject.config, subject.batch_topics)
    try:
        return damaged.read()
    except CorruptFile as error:
        check_refusal(error, root)
        return None


def test_every_maker_is_harmed_in_the_sample() -> None:
    sampled = {maker_of(seed) for seed in range(0, LONG, STEP)}
    assert sampled == set(MAKERS)
