"""What type checkers say about handlers: mypy is run over a program whose wrong lines are marked."""

import re
import subprocess
import sys
from pathlib import Path

from tests import ROOT

PROGRAM = """
import dataclasses
import sqlite3
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic

from skyrocket import Depends, Message, Producer, PushConsumer, ReceivedMessage, RetryPolicy, blocking, publish, reply
from skyrocket.client import ConsumeStatus, Once

consumer = PushConsumer("Billing")


@dataclasses.dataclass
class Order:
    number: str


class Model(pydantic.BaseModel):
    number: str


class Struct(msgspec.Struct):
    number: str


class Typed(TypedDict):
    number: str


@consumer.on("Orders")
async def message_only(message: ReceivedMessage) -> None: ...

@consumer.on("Orders", retry=RetryPolicy(retries=1))
def plain(message: ReceivedMessage) -> ConsumeStatus: ...

@consumer.on("Orders")
async def dataclass(body: Order, attempt: int, session: Annotated[str, Depends(str)]) -> ConsumeStatus | None: ...

@consumer.on("Orders")
async def model(body: Model, session: str = Depends(str)) -> None: ...

@consumer.on("Orders")
async def struct(body: Struct) -> None: ...

@consumer.on("Orders")
async def typed(body: Typed) -> None: ...

@consumer.on("Orders")
async def text(body: str) -> None: ...

@consumer.on("Orders")
async def raw(body: bytes) -> None: ...

@consumer.on("Orders", batch=True)
async def many(messages: list[ReceivedMessage]) -> None: ...

@consumer.on("Orders", batch=True)
async def bodies(bodies: list[Order]) -> None: ...

@consumer.on("Orders", once=Once(lambda: sqlite3.connect(":memory:")))
def once(message: ReceivedMessage, connection: Any) -> None: ...

@consumer.on("Orders")
@publish("Invoices")
async def published(body: Order) -> Model: ...

@consumer.on("Orders")
@reply
def replied(body: Order) -> str: ...

@blocking.PushConsumer("Mail").on("Orders")
def in_a_thread(body: Order) -> None: ...

async def send(producer: Producer) -> None:
    await producer.send(Message("Orders", b"x"))
    await producer.send("Orders", Order("1"), tags="paid", keys=["a"])


@consumer.on("Orders")  # wrong
async def number(m: int) -> None: ...

@consumer.on("Orders")  # wrong
async def result(message: ReceivedMessage) -> str: ...

@consumer.on("Orders")  # wrong
def plain_result(message: ReceivedMessage) -> int: ...

@consumer.on("Orders")  # wrong
async def nothing() -> None: ...

@consumer.on("Orders", batch=True)  # wrong
async def not_a_list(message: ReceivedMessage) -> None: ...

@consumer.on("Orders", once=None, batch=True)  # wrong
async def both(messages: list[ReceivedMessage]) -> None: ...

@blocking.PushConsumer("Mail").on("Orders")  # wrong
def in_a_thread_wrong(m: int) -> None: ...

async def send_wrong(producer: Producer) -> None:
    await producer.send("Orders", Order("1"), tag="paid")  # wrong
    await producer.send(5)  # wrong
"""


def test_mypy_takes_right_handlers_and_refuses_wrong_ones(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(program)]
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--disable-error-code", "empty-body"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    refused = {int(match[1]) for match in re.finditer(r"^\S*program\.py:(\d+): error", done.stdout, re.MULTILINE)}
    wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert refused == wrong, done.stdout + done.stderr
