"""One run of `skyrocket produce`: read, send, report."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from skyrocket.cli.output.rows import csv_lines
from skyrocket.cli.program.lifetime import EXIT_PROBLEMS, stop_on_signals, unless_stopped
from skyrocket.cli.terminal.input import STANDARD_INPUT, lines_of, opened, whole
from skyrocket.cli.terminal.json_lines import Template
from skyrocket.cli.terminal.options import Receipts, SendingOptions
from skyrocket.cli.terminal.sending import Sending, SendProgress
from skyrocket.client import ClientSettings, Message, Producer, ProducerSettings, SendReceipt
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.model.words import counted

EXIT_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Input:
    """Where messages come from; without arguments and files from standard input."""

    arguments: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    whole: bool = False
    as_json: bool = False

    async def messages(self, template: Template) -> AsyncIterator[tuple[str, Message]]:
        """Each with the place it was read from; raises ConfigError."""
        make = template.message_of_line if self.as_json else template.message
        for number, argument in enumerate(self.arguments, 1):
            place = f"argument {number}"
            yield place, _made(place, make, argument.encode("utf-8", "surrogateescape"))
        if self.arguments:
            return
        for path in self.files or (Path("-"),):
            with opened(path) as (descriptor, name):
                if self.whole:
                    yield name, _made(name, make, await whole(descriptor, name))
                    continue
                async for number, line in lines_of(descriptor, name):
                    place = f"{name}, line {number}"
                    yield place, _made(place, make, line)

    @property
    def is_typed(self) -> bool:
        """Whether a person types the messages."""
        reads_input = not self.arguments and (not self.files or Path("-") in self.files)
        return reads_input and sys.stdin.fileno() == STANDARD_INPUT and sys.stdin.isatty()


class ProduceJob:
    """Everything that options said."""

    def __init__(
        self, template: Template, given: Input, settings: ClientSettings, options: SendingOptions, command: str
    ) -> None:
        self._template = template
        self._given = given
        self._settings = settings
        self._options = options
        self._command = command
        self._clock = SystemClock()
        self._has_heading = False

    async def run(self) -> int:
        """The exit code; raises what ended it early."""
        stopping = stop_on_signals()
        began = self._clock.monotonic()
        progress = SendProgress(self._clock, is_wanted=not self._given.is_typed)

        def confirmed(receipt: SendReceipt) -> None:
            progress.advance()
            self._report(receipt)

        options = self._options
        rules = ProducerSettings(send_timeout=options.timeout)
        async with Producer(options.group, settings=rules, client=self._settings) as producer:
            sending = Sending(
                producer,
                self._clock,
                confirmed,
                in_flight=options.in_flight,
                rate=options.rate,
                batched=options.batch,
                failed=self._say if options.keep_going else None,
            )
            try:
                with progress:
                    is_complete = await unless_stopped(self._feed(sending), stopping)
            except SkyrocketError:
                await sending.abandon()
                if sending.count:
                    self._say(f"{counted(sending.count, 'message had', 'messages had')} been sent when it ended")
                raise
            if is_complete is None:
                await sending.abandon()
        self._summarise(sending, self._clock.monotonic() - began)
        if is_complete is None:
            return EXIT_INTERRUPTED
        return EXIT_PROBLEMS if sending.failures else 0

    async def _feed(self, sending: Sending) -> bool:
        async for place, message in self._given.messages(self._template):
            await sending.send(message, place)
        await sending.finish()
        return True

    def _report(self, receipt: SendReceipt) -> None:
        wanted, queue = self._options.receipts, receipt.queue
        if wanted in (Receipts.TEXT, Receipts.TABLE, Receipts.WIDE):
            place = f"{queue.broker_name}:{queue.queue_id}@{receipt.queue_offset}"
            typer.echo(f"{receipt.status.name} {receipt.message_id} {place}")
            return
        shown = {
            "status": receipt.status.name,
            "message_id": receipt.message_id,
            "offset_message_id": receipt.offset_message_id,
            "broker": queue.broker_name,
            "queue_id": queue.queue_id,
            "queue_offset": receipt.queue_offset,
            "recall_handle": receipt.recall_handle,
        }
        if wanted is Receipts.CSV:
            heading = [] if self._has_heading else [list(shown)]
            typer.echo(csv_lines([*heading, list(shown.values())]), nl=False)
            self._has_heading = True
        elif wanted in (Receipts.JSON, Receipts.JSONL):
            typer.echo(json.dumps({name: value for name, value in shown.items() if value is not None}))

    def _summarise(self, sending: Sending, seconds: float) -> None:
        sent = f"{counted(sending.count, 'message was', 'messages were')} sent"
        if sending.failures:
            self._say(f"{sent}, {sending.failures} failed")
        elif self._options.receipts is Receipts.NONE or sending.count > 1:
            self._say(f"{sent} in {seconds:.1f} s ({sending.count / max(seconds, 1e-9):.0f}/s)")

    def _say(self, text: object) -> None:
        typer.echo(f"skyrocket {self._command}: {text}", err=True)


def _made(place: str, make: Callable[[bytes], Message], body: bytes) -> Message:
    try:
        return make(body)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None
