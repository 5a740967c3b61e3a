"""Recovery reads thousands of records at once where all is as usual; the walk from record to record is the authority.

Random logs and randomly harmed stores are recovered in both ways: reports, refusals, log lines, queues, and every byte
of every file must be the same. `SKYROCKET_DAMAGE_SEED=n` replays one seed alone.
"""

import random
import shutil
from pathlib import Path

import pytest

from tests.faults.damaged_store import Damaged
from tests.faults.harmed_stores import MAKERS, Subjects
from tests.faults.harness import BATCH_TOPIC, small_config
from tests.faults.random_damage import harm
from tests.faults.random_logs import write_log
from tests.faults.recovery_ways import check_both_ways
from tests.faults.test_random_damage import seeds

SHORT, LONG, PARTS = 24, 1000, 8
HARMS = 450  # to stores of both makers, in the long mode
FILE_SIZE = 16_384


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return Subjects(tmp_path_factory.mktemp("whole"))


def check_random_log(directory: Path, seed: int) -> None:
    """A log whose queues are lost, then the store that came of it: harmed each time, but for some seeds."""
    choose = random.Random(seed)
    shutil.rmtree(directory, ignore_errors=True)
    root = directory / "store"
    write_log(root, seed, FILE_SIZE)
    config = small_config(
        commit_log_file_size=FILE_SIZE,
        index_entries=1000,
        multi_dispatch=choose.random() < 0.5,
        truncate_damaged_log=choose.random() < 0.5,
        verify_record_crc=choose.random() < 0.1,
        check_crc_on_recover=choose.random() < 0.9,
        queue_buffer_bytes=choose.choice((1 << 20, 1 << 20, 400)),
    )
    subject = Damaged(root, config, frozenset({BATCH_TOPIC}))
    done = []
    for life in range(3):
        if choose.random() < 0.7 and any((root / "commitlog").iterdir()):
            done.append(harm(root, seed * 3 + life))
        try:
            left = check_both_ways(subject, directory / "copy", choose.choice((1, 3, 50, 8192)))
        except Exception as error:
            raise AssertionError(f"seed {seed}, life {life}, {done}: {error}") from error
        shutil.rmtree(root)
        shutil.move(left.root, root)
        if choose.random() < 0.3:
            shutil.rmtree(root / "consumequeue", ignore_errors=True)


def check_harmed_store(subject: Damaged, directory: Path, seed: int) -> None:
    done = harm(subject.root, seed)
    try:
        check_both_ways(subject, directory / "copy", random.Random(seed).choice((3, 50, 8192)))
    except Exception as error:
        raise AssertionError(f"{done}: {error}") from error


def test_random_logs_are_recovered_alike_in_both_ways(directory: Path) -> None:
    for seed in seeds(SHORT, 0, 1):
        check_random_log(directory, seed)


@pytest.mark.parametrize("name", MAKERS)
def test_harmed_stores_are_recovered_alike_in_both_ways(subjects: Subjects, directory: Path, name: str) -> None:
    for seed in seeds(len(MAKERS), list(MAKERS).index(name), len(MAKERS)):
        check_harmed_store(subjects[name].copy(directory / "store"), directory, seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_random_logs_are_recovered_alike_in_both_ways(directory: Path, part: int) -> None:
    for seed in seeds(LONG, part, PARTS):
        check_random_log(directory, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_many_harmed_stores_are_recovered_alike_in_both_ways(subjects: Subjects, directory: Path, name: str) -> None:
    for seed in seeds(HARMS, list(MAKERS).index(name), len(MAKERS)):
        check_harmed_store(subjects[name].copy(directory / "store"), directory, seed)
