"""Whatever brokers, clients and messages say is text: no form of output lets it command a terminal."""

import json
from pathlib import Path

import pytest

from skyrocket.cli.nouns.operator import Operator
from skyrocket.cli.output.changes import Change, changes_text
from skyrocket.cli.output.rows import Column, Output, rendered, rendered_object
from skyrocket.client import ClientSettings
from tests.cluster.command_line import at

EVIL = '\x1b]0;owned\x07\x9b2J\x7f\u202ea\r\nb,"c"\'\ud83d'
COMMANDS = {chr(code) for code in (*range(10), *range(11, 32), *range(127, 160))} | {"\u202e"}


def commands_in(text: str) -> set[str]:
    return COMMANDS & set(text)


@pytest.mark.parametrize("output", Output)
def test_rows_objects_and_changes_in_all_forms(output: Output) -> None:
    row = {EVIL: EVIL, "list": [EVIL], "map": {EVIL: EVIL}}
    columns = [Column(key) for key in ("list", "map")]
    shown = [
        rendered(columns, [row | {"list": EVIL}], output),
        rendered_object(row, output),
        changes_text([Change(EVIL, EVIL, EVIL, EVIL, [EVIL])], output, done=True),
    ]
    assert [commands_in(text) for text in shown] == [set(), set(), set()]
    if output is Output.JSON:
        assert json.loads(shown[1]) == row


def test_questions_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    operator = Operator(ClientSettings("127.0.0.1:9876"))
    operator._confirm(f"That stops group {EVIL}. Do it?")
    assert commands_in(asked[0]) == set()


def test_secrets_of_contexts_are_not_shown(tmp_path: Path) -> None:
    contexts = tmp_path / "contexts.yml"
    secrets = "access_key: ops, secret_key: hush-1, security_token: hush-2"
    contexts.write_text(f"current: prod\ncontexts:\n  prod: {{namesrv: 'a:1', {secrets}}}\n")
    for command in ("show", "show --output json", "set prod --read-only --output json", "delete prod --output json"):
        done = at("", "context", *command.split(), SKYROCKET_CONTEXTS=str(contexts))
        assert done.code == 0, done.errors
        assert "hush" not in done.output + done.errors
