"""The archive's lake on an object store and on HDFS: the same books, the same promises, no jar."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyarrow import fs
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.config.sections import StoreConfig
from skyrocket.errors import ConfigError
from skyrocket.format.properties import encode_properties
from skyrocket.pipeline.jobs import archive
from skyrocket.pipeline.jobs.inputs import Archive
from skyrocket.pipeline.jobs.local.reading import LocalRead
from skyrocket.pipeline.lake import Change, Lake, LakeBusy, LakeFile, lake_writer
from skyrocket.pipeline.lake.lease import leased
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.pipeline.hdfs_cluster import hdfs_package, running_hdfs
from tests.pipeline.s3_server import running_s3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
CONFIG = StoreConfig(commit_log_file_size=65_536, consume_queue_file_size=400, index_slots=50, index_entries=300)
BROKER = "broker-a"
SCHEMA = pa.schema([("number", pa.int64())])


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with running_s3() as address:
        account = {"access_key": "k", "secret_key": "s3cr3t", "region": "us-east-1"}
        files = fs.S3FileSystem(**account, endpoint_override=address, allow_bucket_creation=True)
        files.create_dir("lake")
        yield f"s3://k:s3cr3t@lake/{{}}?endpoint_override={quote(address, safe='')}&region=us-east-1"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    package = str(hdfs_package())
    sys.path.append(package)
    try:
        with running_hdfs(tmp_path_factory.mktemp("hdfs")) as address:
            yield f"{address}/{{}}"
    finally:
        sys.path.remove(package)


@pytest.fixture(params=["s3", "hdfs"])
def place(request: pytest.FixtureRequest) -> str:
    """A URI with room for the name of a lake."""
    return str(request.getfixturevalue(request.param))


def put(store: Path, numbers: range) -> None:
    with MessageStore(store, CONFIG) as ours:
        for number in numbers:
            properties = encode_properties({"UNIQ_KEY": f"unique-{number}", "KEYS": f"key-{number}"})
            ours.put(PutMessage(("Orders", "%RETRY%billing")[number % 2], 0, b"%d" % number, properties))


def archived(location: str) -> list[int]:
    """What a job without Spark reads of it."""
    rows = LocalRead(Archive(location), ".*", ["body"]).table()
    return sorted(int(body) for body in rows["body"].to_pylist())


def test_each_message_is_in_the_lake_once_over_several_runs_and_a_compaction(place: str, tmp_path: Path) -> None:
    location = place.format("archive")
    store = tmp_path / "store"
    put(store, range(300))
    said = _run("archive", str(store), "--broker-name", BROKER, "--lake", location)
    assert archived(location) == list(range(300))
    assert "s3cr3t" not in said, "an account is not shown"
    put(store, range(300, 500))
    _run("archive", str(store), "--broker-name", BROKER, "--lake", location)
    _run("archive", str(store), "--broker-name", BROKER, "--lake", location)
    assert archived(location) == list(range(500))
    lake = Lake(location)
    many = len(lake.state().files)
    _run("compact", "--lake", location)
    assert len(lake.state().files) < many
    assert archived(location) == list(range(500))
    assert lake.files.names("_skyrocket/pending") == lake.files.names("_skyrocket/locks") == []
    assert not Path("s3:").exists(), "a URI is no name of a directory"


def _run(*arguments: str) -> str:
    """A program of its own: Spark's workers find hdfs-native by its PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "skyrocket", "pipeline", *arguments, "--master", "local[2]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


def _archive(lake: Lake, begin: int) -> None:
    with lake_writer(lake, BROKER) as books:
        if lake.state().archived_to.get(BROKER, 0) > begin:
            return
        path = f"topic=Orders/dt=2026-11-16/{begin}.parquet"
        with lake.files.new_parquet(f"{books.staging}/{path}", SCHEMA) as writer:
            writer.write_table(pa.table({"number": [begin]}, SCHEMA))
        new = LakeFile(path, "Orders", "2026-11-16", BROKER, 1, 4, begin, begin, 1, 2)
        books.publish(Change("archive", BROKER, begin, begin + 1, added=(new,)))


@pytest.mark.parametrize("step", ["create", "replace", "move", "delete"])
def test_a_writer_killed_at_any_step_leaves_all_or_nothing(
    place: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(place.format(f"killed-{step}"))
    _archive(lake, 0)

    def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(lake.files), step, dies)
        with pytest.raises(Killed):
            _archive(lake, 1)
    assert set(lake.state().files) in ({_path(0)}, {_path(0), _path(1)})
    _archive(lake, 1)
    _archive(lake, 2)
    state = lake.state()
    assert set(state.files) == {_path(0), _path(1), _path(2)}
    for number in range(3):
        assert lake.files.parquet(_path(number)).read()["number"].to_pylist() == [number]
    assert lake.files.names("_skyrocket/pending") == []


def _path(number: int) -> str:
    return f"topic=Orders/dt=2026-11-16/{number}.parquet"


def test_two_writers_of_one_broker_exclude_each_other_until_a_lease_has_ended(place: str) -> None:
    lake = Lake(place.format("two"))
    with lake_writer(lake, BROKER):
        with pytest.raises(LakeBusy, match=r"another process \(.* process \d+ .*\) writes the records of broker-a"):
            lake_writer(lake, BROKER).__enter__()
        with lake_writer(lake, "broker-b"):
            pass
    files, path = _files(lake)
    with leased(files, path, BROKER, seconds=5, renewed=0.5) as check:  # half a second goes for each file on HDFS
        time.sleep(6)
        check()
        with pytest.raises(LakeBusy), leased(files, path, BROKER):
            pass
    files.create_dir(path.rpartition("/")[0])
    with files.open_output_stream(path) as stream:
        stream.write(json.dumps({"owner": "a dead one", "untilMs": 1}).encode())
    _archive(lake, 0)
    assert set(lake.state().files) == {_path(0)}


def _files(lake: Lake) -> tuple[fs.FileSystem, str]:
    from skyrocket.pipeline.file_systems import file_system

    files, root = file_system(str(lake.location))
    return files, f"{root}/_skyrocket/locks/{BROKER}.json"


def test_a_place_that_cannot_be_written_is_named_before_spark_starts(tmp_path: Path, s3: str) -> None:
    put(tmp_path / "store", range(3))
    source = archive.ArchiveFrom(tmp_path / "store", BROKER)
    nowhere = s3.format("x").replace("@lake/", "@nowhere/")
    with pytest.raises(ConfigError, match=r"the lake s3://nowhere/x cannot be written: .*; check the path"):
        archive.check(source, nowhere, "parquet")
    with pytest.raises(ConfigError, match=r"--table delta is for a lake in a directory of this machine"):
        archive.check(source, s3.format("x"), "delta")
    ended = CliRunner().invoke(app, ["pipeline", "dlq", "--archive", s3.format("none")])
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1)
    assert "s3://lake/none is not a lake" in ended.output
