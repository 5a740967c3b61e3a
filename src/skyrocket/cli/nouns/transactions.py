"""`skyrocket transactions list | commit | rollback`: transactions that wait for their producer's word."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.moments import span
from skyrocket.cli.nouns.operator import Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Output, Row
from skyrocket.cli.program.moments import seconds_of
from skyrocket.cli.program.options import JsonLinesOption, limit_option, panel, topic_option
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, OpenTransaction

_which = panel("Which transactions")

transactions = verbs("Open transactions: those without a commit or rollback.")

OPEN: Final = (
    Column("transactionId", "TRANSACTION"),
    Column("topic"),
    Column("keys"),
    Column("producerGroup", "GROUP"),
    Column("age", number=True),
    Column("checks", number=True),
    Column("broker"),
    Column("ageMs", "AGE MS", wide=True, number=True),
    Column("halfOffset", "HALF OFFSET", wide=True, number=True),
)


@dataclass(frozen=True)
class TransactionOptions:
    """Which open transactions."""

    topic: Annotated[str | None, topic_option(_which)] = None
    producer_group: Annotated[str | None, _which("--producer-group", help="Of this producer group.")] = None
    older: Annotated[str | None, _which("--older", help="Open for at least this long: 30s, 10m, 2h.")] = None
    limit: Annotated[int, limit_option(_which)] = 100

    def found(self, operator: Operator, ids: Sequence[str] = ()) -> "list[OpenTransaction]":
        """Those with these ids, or all; raises NotFound for an id that is not open."""
        least_ms = 0.0 if self.older is None else seconds_of(self.older) * 1000
        return [each for each in operator.ask(partial(self._read, ids)) if each.age_ms >= least_ms]

    async def _read(self, ids: Sequence[str], admin: "Admin") -> "list[OpenTransaction]":
        from skyrocket.client import NotFound

        read = partial(admin.open_transactions, self.topic, producer_group=self.producer_group)
        if not ids:
            return await read(most=self.limit)
        found: list[OpenTransaction] = []
        for each in ids:
            of_id = await read(transaction_id=each)
            if not of_id:
                raise NotFound(f"no open transaction {each}: it has ended, or its id is another; nothing was done")
            found += of_id
        return found


@transactions.command("list")
@operator_command("transactions list")
def list_open(operator: Operator, *, which: TransactionOptions, as_json: JsonLinesOption = False) -> None:
    """Show them, oldest first, with age and number of checks. Only Skyrocket's brokers list them.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 3: some brokers failed.
    """
    if as_json:
        operator.output = Output.JSONL
    operator.show(OPEN, [_row(each) for each in which.found(operator)], empty="no open transactions")


def _add_ending(verb: str, state: str, effect: str, question: str | None) -> None:
    """`transactions commit` and `transactions rollback`: one command with two outcomes."""

    @transactions.command(
        verb,
        help=f"{effect} their messages: an operator's word in place of the producer's.\n\n"
        "Exit code 0: done, 1: it failed, 2: wrong usage, 3: some brokers failed, 4: there is no such transaction.",
    )
    @operator_command(f"transactions {verb}", writes=True)
    def end(
        operator: Operator,
        ids: Annotated[
            list[str] | None, typer.Argument(metavar="[ID]...", help="Transaction ids, as `list` shows them.")
        ] = None,
        *,
        which: TransactionOptions,
        everything: Annotated[bool, _which("--all", help="All that the options choose, without ids.")] = False,
    ) -> None:
        if bool(ids) == everything:
            raise ConfigError("say which: ids of transactions, or --all with --topic, --producer-group or --older")
        chosen = which.found(operator, ids or ())
        changes = [
            Change(f"transaction {_name(each)} of {each.topic}", each.broker_name, "state", "open", state)
            for each in chosen
        ]

        async def end_all(admin: "Admin") -> None:
            for each in chosen:
                await admin.end_transaction(each, commit=verb == "commit")

        what = counted(len(chosen), "transaction")
        asked = None if question is None else f"{what}: {question}"
        operator.carry_out(changes, end_all, question=asked, done=f"{what} {state}")


_add_ending("commit", "committed", "Deliver", None)
_add_ending("rollback", "rolled back", "Never deliver", "what waits there will never be delivered. Do it?")


def _name(each: "OpenTransaction") -> str:
    return each.transaction_id or f"(without an id, offset {each.half_offset})"


def _row(each: "OpenTransaction") -> Row:
    return {
        "transactionId": each.transaction_id,
        "topic": each.topic,
        "keys": list(each.keys),
        "producerGroup": each.producer_group,
        "age": span(each.age_ms / 1000),
        "checks": each.checks,
        "broker": each.broker_name,
        "ageMs": each.age_ms,
        "halfOffset": each.half_offset,
    }
