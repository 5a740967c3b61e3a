"""Random harm of every kind to closed, killed and live stores of both makers.

What lies before the damage is there, or is refused with file, place and remedy; no queue vanishes, no queue answers
with what is not its own, and no file of the log is deleted. `SKYROCKET_DAMAGE_SEED=n` replays one seed alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from tests.faults.damaged_store import Damaged, read_everything
from tests.faults.harmed_stores import LONG, MAKERS, PARTS, Subject, Subjects, judge
from tests.faults.harness import check_refusal
from tests.faults.random_damage import Harm, harm

SHORT = 60


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return Subjects(tmp_path_factory.mktemp("whole"))


def check(subject: Subject, damaged: Damaged, done: Harm, logs: dict[str, bytes]) -> None:
    """Open the harmed store, read it, and judge."""
    try:
        reading = damaged.read()
    except CorruptFile as error:
        check_refusal(error, damaged.root)
    else:
        judge(subject, reading, done)
    check_nothing_deleted(damaged, done, logs)


def check_nothing_deleted(damaged: Damaged, done: Harm, logs: dict[str, bytes]) -> None:
    """Every file of the log that holds a byte is still there, or lies where recovery keeps what it cuts."""
    after = damaged.files("commitlog")
    kept = {name.rpartition("/")[2] for name in damaged.files("skyrocket.cut")}
    for name, data in logs.items():
        assert name in after or name.rpartition("/")[2] in kept or not any(data), f"{name} was deleted"
        if name in after and len(data) == len(after[name]) and done.log_range is None:
            assert after[name].startswith(data.rstrip(b"\0")) or kept, f"{name} was changed"


def run_seed(subject: Subject, directory: Path, seed: int) -> None:
    damaged = subject.copy(directory / "store")
    if subject.live:
        with damaged.opened() as store:
            done = harm(damaged.root, seed, live=True)
            judge(subject, read_everything(store), done)
    else:
        done = harm(damaged.root, seed)
    logs = damaged.files("commitlog")
    try:
        check(subject, damaged, done, logs)
    except Exception as error:
        raise AssertionError(f"{done}: {error!r}") from error


def seeds(count: int, part: int, parts: int) -> Iterator[int]:
    only = os.environ.get("SKYROCKET_DAMAGE_SEED")
    yield from [int(only)] if only else range(part, count, parts)


def run_seeds(subject: Subject, directory: Path, chosen: Iterator[int]) -> None:
    failures = []
    for seed in chosen:
        try:
            run_seed(subject, directory, seed)
        except AssertionError as error:
            failures.append(str(error)[:400])
    assert not failures, f"{len(failures)} harms:\n" + "\n".join(failures[:10])


@pytest.mark.parametrize("name", MAKERS)
def test_harm_of_every_kind_loses_nothing_before_it(subjects: Subjects, directory: Path, name: str) -> None:
    number = list(MAKERS).index(name)
    run_seeds(subjects[name], directory, seeds(SHORT, number, len(MAKERS)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", MAKERS)
def test_much_harm_of_every_kind_loses_nothing_before_it(
    subjects: Subjects, directory: Path, name: str, part: int
) -> None:
    number = list(MAKERS).index(name) * PARTS + part
    run_seeds(subjects[name], directory, seeds(LONG, number, len(MAKERS) * PARTS))
