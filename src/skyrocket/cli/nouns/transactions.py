"""`skyrocket transactions`: those that wait for their producer's word, and those that brokers gave up."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.moments import moment, span
from skyrocket.cli.nouns.operator import Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Output, Row
from skyrocket.cli.program.moments import seconds_of
from skyrocket.cli.program.options import JsonLinesOption, limit_option, panel, topic_option
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, GivenUpTransaction, OpenTransaction

_which = panel("Which transactions")

_MOST_GIVEN_UP: Final = 10_000  # in which an id is looked for

transactions = verbs("Transactions without a commit or rollback: open ones, and those that brokers gave up.")

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Transaction ids, as `list` shows them.")
]
EverythingOption = Annotated[bool, _which("--all", help="All that the options choose, without ids.")]

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
GIVEN_UP: Final = (
    Column("givenUpAt", "GIVEN UP"),
    Column("transactionId", "TRANSACTION"),
    Column("topic"),
    Column("keys"),
    Column("producerGroup", "GROUP"),
    Column("checks", number=True),
    Column("broker"),
    Column("offsetMessageId", "RECORD", wide=True),
)


@dataclass(frozen=True)
class TransactionOptions:
    """Which open transactions."""

    topic: Annotated[str | None, topic_option(_which)] = None
    producer_group: Annotated[str | None, _which("--producer-group", help="Of this producer group.")] = None
    older: Annotated[str | None, _which("--older", help="Open for at least this long: 30s, 10m, 2h.")] = None
    limit: Annotated[int, limit_option(_which)] = 100

    def chosen(self, operator: Operator, ids: Sequence[str] | None, *, everything: bool) -> "list[OpenTransaction]":
        """Those with these ids, or with --all all of these options; raises ConfigError for neither and for both."""
        if bool(ids) == everything:
            raise ConfigError("say which: ids of transactions, or --all with --topic, --producer-group or --older")
        return self.found(operator, ids or ())

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
        ids: IdsArgument = None,
        *,
        which: TransactionOptions,
        everything: EverythingOption = False,
    ) -> None:
        chosen = which.chosen(operator, ids, everything=everything)
        changes = [_change(each, "state", "open", state) for each in chosen]

        async def end_all(admin: "Admin") -> None:
            for each in chosen:
                await admin.end_transaction(each, commit=verb == "commit")

        what = counted(len(chosen), "transaction")
        asked = None if question is None else f"{what}: {question}"
        operator.carry_out(changes, end_all, question=asked, done=f"{what} {state}")


_add_ending("commit", "committed", "Deliver", None)
_add_ending("rollback", "rolled back", "Never deliver", "what waits there will never be delivered. Do it?")


@transactions.command()
@operator_command("transactions check", writes=True)
def check(
    operator: Operator, ids: IdsArgument = None, *, which: TransactionOptions, everything: EverythingOption = False
) -> None:
    """Have their producers asked now, not when it is their turn; `list` shows later what has ended.

    Exit code 0: asked, 1: it failed, or no producer of the group is connected, 2: wrong usage, 3: some brokers failed,
    4: there is no such transaction.
    """
    chosen = which.chosen(operator, ids, everything=everything)

    async def check_all(admin: "Admin") -> None:
        for each in chosen:
            await admin.check_transaction(each)

    what = counted(len(chosen), "transaction")
    changes = [_change(each, "checks", each.checks, each.checks + 1) for each in chosen]
    operator.carry_out(changes, check_all, done=f"producers are asked about {what}")


@transactions.command("given-up")
@operator_command("transactions given-up")
def list_given_up(
    operator: Operator, limit: Annotated[int, limit_option()] = 100, as_json: JsonLinesOption = False
) -> None:
    """Show those that brokers gave up after too many checks, newest first; one that is resumed stays in this list.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 3: some brokers failed.
    """
    if as_json:
        operator.output = Output.JSONL
    found = operator.ask(lambda admin: admin.given_up_transactions(most=limit))
    operator.show(GIVEN_UP, [_given_up_row(each) for each in found], empty="no transactions were given up")


@transactions.command()
@operator_command("transactions resume", writes=True)
def resume(
    operator: Operator,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Transaction ids, as `given-up` shows them.")],
) -> None:
    """Open given-up ones again: their producers are asked from the beginning.

    Exit code 0: done, 1: it failed, 2: wrong usage, 3: some brokers failed, 4: there is no such transaction.
    """
    chosen = operator.ask(lambda admin: _given_up(admin, ids))

    async def resume_all(admin: "Admin") -> None:
        for each in chosen:
            await admin.resume_transaction(each)

    operator.carry_out(
        [_change(each, "state", "given up", "open") for each in chosen],
        resume_all,
        done=f"{counted(len(chosen), 'transaction is', 'transactions are')} open again",
    )


async def _given_up(admin: "Admin", ids: Sequence[str]) -> "list[GivenUpTransaction]":
    """The newest record of each id; raises NotFound."""
    from skyrocket.client import NotFound

    newest: dict[str, GivenUpTransaction] = {}
    for each in await admin.given_up_transactions(most=_MOST_GIVEN_UP):
        newest.setdefault(each.transaction_id, each)
    for wanted in ids:
        if wanted not in newest:
            raise NotFound(
                f"no transaction {wanted} was given up, of the newest {_MOST_GIVEN_UP:,}: `skyrocket transactions "
                "given-up` lists them; nothing was done"
            )
    return [newest[wanted] for wanted in dict.fromkeys(ids)]


def _change(each: "OpenTransaction | GivenUpTransaction", field: str, before: object, after: object) -> Change:
    name = each.transaction_id or "(without an id)"
    return Change(f"transaction {name} of {each.topic}", each.broker_name, field, before, after)


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


def _given_up_row(each: "GivenUpTransaction") -> Row:
    return {
        "givenUpAt": moment(each.given_up_ms),
        "transactionId": each.transaction_id,
        "topic": each.topic,
        "keys": list(each.keys),
        "producerGroup": each.producer_group,
        "checks": each.checks,
        "broker": each.broker_name,
        "offsetMessageId": each.offset_message_id,
    }
