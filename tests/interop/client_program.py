"""A client program of another language, led step by step.

The programs (java/ScenarioClient.java, go/scenario_client.go, node/scenario_client.js) know the same few steps; what
a scenario is and what must come out is said once, in scenarios.py. A step is a line of JSON, and so is its answer:
`{"result": …}`, `{"error": text}`, or `{"none": reason}` when the client has no such feature.

| step | fields | result |
|---|---|---|
| send | how: sync, async, oneway, ordered, batch; messages | status, ids and place of each (one for a batch) |
| transact | group, messages | the status of each; bodies say what becomes of them: "commit now", "roll back later" |
| consume | consumer, group, topic, expression, sql, orderly, broadcast, pop, failures, maxReconsumeTimes, replies | |
| deliveries | consumer, from | what the listener was given, from that one on |
| stop | consumer | |
| pull, lite-pull | group, topic, count | messages; their offsets are committed |
| by-id, by-key | topic, id or key | the message, the messages |
| queue-offsets | topic, time | min, max and the offset at a time, per queue |
| request | message, timeout | the reply |
| can | feature: create topics, hear resets | nothing, or none |
"""

import base64
import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP_TIMEOUT_S = 60.0


class NotOffered(Exception):
    """The client has no such feature."""


class StepFailed(AssertionError):
    """The client says that a step failed, or says nothing."""


@dataclass(frozen=True)
class Delivery:
    """One message as a client shows it."""

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    tags: str | None
    keys: str | None
    message_id: str | None
    reconsume_times: int
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Sent:
    """What a client says of a message that it sent; `message_id` is the unique key, which Node does not tell."""

    status: str
    message_id: str | None
    offset_message_id: str
    queue_id: int
    queue_offset: int


class ClientProgram:
    """A running client."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        self._log = log
        self._lines: queue.Queue[str] = queue.Queue(maxsize=1000)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def do(self, step: str, *, timeout_s: float = STEP_TIMEOUT_S, **fields: Any) -> Any:
        """One step; raises NotOffered or StepFailed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": step, **fields}) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=timeout_s)
        except (queue.Empty, BrokenPipeError):
            line = ""
        if not line:
            self._process.kill()  # an answer that comes late would be taken for the next one's
            raise StepFailed(f"{step}: no answer from the client, which wrote:\n{self._last_words()}")
        answer = json.loads(line)
        if "none" in answer:
            raise NotOffered(answer["none"])
        if "error" in answer:
            raise StepFailed(f"{step}: {answer['error']}")
        return answer.get("result")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    # ── steps with types ─────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, how: str, *messages: dict[str, Any]) -> list[Sent]:
        answers = self.do("send", how=how, messages=list(messages))
        return [
            Sent(line["status"], line.get("msgId"), line["offsetMsgId"], line["queueId"], line["queueOffset"])
            for line in answers
        ]

    def consume(self, consumer: str, group: str, topic: str, expression: str = "*", **wishes: Any) -> None:
        self.do("consume", consumer=consumer, group=group, topic=topic, expression=expression, **wishes)

    def deliveries(self, consumer: str, start: int = 0) -> list[Delivery]:
        return [delivery(line) for line in self.do("deliveries", consumer=consumer, **{"from": start})]

    def stop(self, consumer: str) -> None:
        self.do("stop", consumer=consumer)

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


def message(topic: str, body: bytes, **fields: Any) -> dict[str, Any]:
    """A message as the steps take it: tags, keys, properties, delayLevel, shardingKey."""
    return {"topic": topic, "body": base64.b64encode(body).decode(), **fields}


def delivery(line: dict[str, Any]) -> Delivery:
    """A message as the steps give it."""
    return Delivery(
        line["topic"],
        line["queueId"],
        line["queueOffset"],
        base64.b64decode(line["body"]),
        line.get("tags"),
        line.get("keys"),
        line.get("msgId"),
        line["reconsumeTimes"],
        line["properties"] or {},
    )


@contextlib.contextmanager
def running_client(command: list[str], environment: Mapping[str, str], home: Path) -> Iterator[ClientProgram]:
    """The program, with a home directory of its own; nothing of it is left running."""
    log = home / "client.log"
    with open(log, "w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env={**os.environ, "HOME": str(home), **environment},
            start_new_session=True,
        )
    try:
        yield ClientProgram(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
