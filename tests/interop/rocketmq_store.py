"""A store directory in the hands of RocketMQ's DefaultMessageStore (java/StoreReader.java), seen from Python."""

import base64
import contextlib
import itertools
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skyrocket.config.sections import StoreConfig
from tests.interop.apache import Apache, Finished

Line = dict[str, Any]
QueueKey = tuple[str, int]

TIMEOUT_S = 90
HALTED = 137
FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class Draft:
    """A message to append, by RocketMQ or by us; the body is as stored."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_host: str = "127.0.0.1"
    store_host: str = "127.0.0.1"

    def with_property(self, name: str, value: str) -> "Draft":
        return replace(self, properties={**self.properties, name: value})

    def request(self) -> Line:
        return {
            "topic": self.topic,
            "queueId": self.queue_id,
            "body": base64.b64encode(self.body).decode(),
            "properties": self.properties,
            "flag": self.flag,
            "sysFlag": self.sys_flag,
            "bornHost": self.born_host,
            "storeHost": self.store_host,
        }


@dataclass(frozen=True)
class KeyQuery:
    """Which records of a topic bear a key; type "T" asks 5.4.0 for a tag instead."""

    topic: str
    key: str
    max_count: int = 64
    begin_ms: int = 0
    end_ms: int = FOREVER
    type: str | None = None

    def request(self) -> Line:
        line = {"topic": self.topic, "key": self.key, "max": self.max_count, "begin": self.begin_ms, "end": self.end_ms}
        return line if self.type is None else line | {"type": self.type}


@dataclass(frozen=True)
class Contents:
    """What RocketMQ found in a store, and what it answered."""

    lines: list[Line]
    log: str

    @property
    def recovered_end(self) -> int:
        """Where the commit log ended after load()."""
        return int(self._one("loaded")["maxPhyOffset"])

    @property
    def physical_range(self) -> tuple[int, int]:
        store = self._one("store")
        return store["minPhyOffset"], store["maxPhyOffset"]

    @property
    def queues(self) -> dict[QueueKey, Line]:
        return {(line["topic"], line["queueId"]): line for line in self.of("queue")}

    @property
    def messages(self) -> list[Line]:
        """In the order of topic, queue and queue offset."""
        return self.of("message")

    @property
    def appended(self) -> list[Line]:
        return self.of("appended")

    @property
    def query_results(self) -> list[list[int]]:
        """Physical offsets per query, in the order of the queries."""
        return [line["physicalOffsets"] for line in self.of("query")]

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["kind"] == kind]

    def complaints(self) -> list[str]:
        """The warnings, errors and stack traces in RocketMQ's log."""
        return complaints_in(self.log)

    def _one(self, kind: str) -> Line:
        (line,) = self.of(kind)
        return line


def read(apache: Apache, store: Path, config: StoreConfig, **requests: Any) -> Contents:
    """Let RocketMQ load (and so recover) a directory and tell everything in it."""
    return _call(apache, "read", store, config, requests, expected_exit=0)


def append(apache: Apache, store: Path, config: StoreConfig, drafts: list[Draft], **requests: Any) -> Contents:
    """Let RocketMQ start on a directory, append, tell everything and close cleanly."""
    requests["append"] = [draft.request() for draft in drafts]
    return _call(apache, "append", store, config, requests, expected_exit=0)


def append_and_halt(apache: Apache, store: Path, config: StoreConfig, drafts: list[Draft]) -> Contents:
    """Let RocketMQ append and vanish, as after kill -9."""
    requests = {"append": [draft.request() for draft in drafts]}
    return _call(apache, "halt", store, config, requests, expected_exit=HALTED)


@contextlib.contextmanager
def holding(apache: Apache, store: Path, config: StoreConfig) -> Iterator[None]:
    """While the block runs, a RocketMQ is running on the store."""
    settings = [f"{key}={value}" for key, value in settings_for(apache, config).items()]
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as home:
        command = apache.command("StoreReader", "hold", str(store), *settings, home=Path(home))
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("{}")
                process.stdin.close()
                kinds = [json.loads(line)["kind"] for line in itertools.islice(process.stdout, 2)]
                assert kinds == ["loaded", "holding"]
                yield
            finally:
                process.kill()


def settings_for(apache: Apache, config: StoreConfig) -> dict[str, int]:
    """The file sizes, which RocketMQ must share; nothing else in the files depends on settings."""
    settings = {
        "mappedFileSizeCommitLog": config.commit_log_file_size,
        "mappedFileSizeConsumeQueue": config.consume_queue_file_size,
        "maxHashSlotNum": config.index_slots,
        "maxIndexNum": config.index_entries,
    }
    if apache.version.startswith("5."):
        settings["mapperFileSizeBatchConsumeQueue"] = config.batch_queue_file_size
    return settings


def complaints_in(log: str) -> list[str]:
    """What is left of a log without its INFO lines: warnings, errors, stack traces."""
    return [line for line in log.splitlines() if " INFO " not in line]


def _call(
    apache: Apache, mode: str, store: Path, config: StoreConfig, requests: dict[str, Any], *, expected_exit: int
) -> Contents:
    settings = [f"{key}={value}" for key, value in settings_for(apache, config).items()]
    settings += [f"{key}={value}" for key, value in requests.pop("settings", {}).items()]
    wanted = {"queries": [query.request() for query in requests.pop("queries", [])]} | requests
    stdin = json.dumps(wanted)
    done = apache.run("StoreReader", mode, str(store), *settings, stdin=stdin, timeout_s=TIMEOUT_S)
    if done.exit_code != expected_exit:
        raise AssertionError(f"RocketMQ {apache} could not {mode} {store}:\n{_last_words(done)}")
    return Contents([json.loads(line) for line in done.stdout.splitlines()], done.stderr)


def _last_words(done: Finished) -> str:
    return "\n".join([f"exit code {done.exit_code}", *complaints_in(done.stderr)[-60:]])
