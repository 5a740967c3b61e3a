"""`skyrocket apply -f`: topics, groups, users, rights and settings of a file: what differs is shown, then made so.

topics:
  Orders: {queues: 8, type: FIFO}
  Audit: {read_queues: 4, write_queues: 4, perm: R}
groups:
  Billing: {retry_max_times: 3, consumes_orderly: true}
users:
  alice: {password_env: ALICE_PASSWORD, super: false}
rights:
  - {subject: alice, resources: ["Topic:Orders"], actions: [Pub, Sub]}
settings:
  autoCreateTopicEnable: "false"
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.acl import actions_of, problems_of, resource_of, shown_right, subject_of
from skyrocket.cli.nouns.operator import ClusterNameOption, Operator, operator_command
from skyrocket.cli.nouns.topic import attributes_of, permission_of
from skyrocket.cli.output.changes import Change, differences, fields_of
from skyrocket.errors import ConfigError
from skyrocket.model.topic_config import MOST_QUEUES

if TYPE_CHECKING:
    from skyrocket.client.admin.declarations import Declared, DeclaredUser, Plan

_SECTIONS: Final = ("topics", "groups", "users", "rights", "settings")
_TOPIC_KEYS: Final = ("queues", "read_queues", "write_queues", "perm", "type", "ordered", "attributes")
_RIGHT_KEYS: Final = ("subject", "resources", "actions", "from", "decision")
_DECISIONS: Final = ("Allow", "Deny")


@operator_command("apply", writes=True)
def apply(
    operator: Operator,
    file: Annotated[Path, typer.Option("--file", "-f", help="YAML or JSON; `-` is standard input.")],
    cluster: ClusterNameOption = None,
) -> None:
    """Make a cluster have what a file declares; what it does not name is left alone, nothing is deleted.

    Exit code 0: done, or nothing to do, 1: it failed, 2: wrong usage or file, 3: some brokers failed.
    """
    declared = declared_in(_content(file), str(file))
    plan = operator.ask(lambda admin: admin.plan_declared(declared, cluster=cluster))
    changes = list(_changes(plan))
    operator.carry_out(
        changes,
        lambda admin: admin.apply_plan(plan, declared, cluster=cluster),
        question=_question(plan),
        done="applied",
    )


def _question(plan: "Plan") -> str | None:
    """As the commands for one topic and for settings ask."""
    fewer = {
        each.after.name for each in plan.topics if each.before and each.after.read_queues < each.before.read_queues
    }
    unknown = {each.key for each in plan.settings if each.before is None}
    doubts = []
    if fewer:
        doubts.append(f"Fewer read queues for {', '.join(sorted(fewer))}: messages of the others are not consumed.")
    if unknown:
        doubts.append(f"Brokers do not show {', '.join(sorted(unknown))} among their settings.")
    return " ".join([*doubts, "Do it?"]) if doubts else None


def _content(file: Path) -> Any:
    import sys

    import yaml

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return yaml.safe_load(text) or {}
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise ConfigError(f"{file}{where} is not YAML: {error.problem}") from None
    except (ValueError, yaml.YAMLError) as error:  # a date that is none, a number without end
        raise ConfigError(f"{file} is not YAML: {error}") from None


def declared_in(content: Any, place: str) -> "Declared":
    """What a file says; raises ConfigError with all that is wrong with it."""
    from skyrocket.client.admin.declarations import Declared

    if not isinstance(content, dict) or set(content) - set(_SECTIONS):
        unknown = (
            ", ".join(sorted(map(str, set(content) - set(_SECTIONS))))
            if isinstance(content, dict)
            else type(content).__name__
        )
        raise ConfigError(f"{place}: {unknown} is not one of {', '.join(_SECTIONS)}")
    problems: list[str] = []
    topics = {name: _topic(name, given, problems) for name, given in _named(content, "topics", problems)}
    groups = {name: _group(name, given, problems) for name, given in _named(content, "groups", problems)}
    users = {name: _user(name, given, problems) for name, given in _named(content, "users", problems)}
    listed = content.get("rights") or []
    rights = [right for given in _list(listed, "rights", problems) for right in _rights(given, problems)]
    pairs = Counter((right.subject, right.resource) for right in rights)
    problems += [
        f"right of {subject} for {resource} is declared {times} times: brokers keep one of each"
        for (subject, resource), times in pairs.items()
        if times > 1
    ]
    settings = {str(key): _text(value) for key, value in _mapping(content.get("settings"), "settings", problems)}
    if problems:
        raise ConfigError(f"{place}: " + "; ".join(problems))
    return Declared(topics, groups, users, tuple(rights), settings)


def _mapping(given: Any, place: str, problems: list[str]) -> list[tuple[str, Any]]:
    if given is not None and not isinstance(given, dict):
        problems.append(f"{place} is {given!r}, not names with their values: write `{place}:` and below it `  name: …`")
        return []
    return [(str(key), value) for key, value in (given or {}).items()]


def _named(content: Mapping[str, Any], section: str, problems: list[str]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, dict(_mapping(fields, f"{section}.{name}", problems)))
        for name, fields in _mapping(content.get(section), section, problems)
    ]


def _list(given: Any, place: str, problems: list[str]) -> list[Any]:
    if not isinstance(given, list):
        problems.append(f"{place} is {given!r}, not a list: begin each line with `- `")
        return []
    return given


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _topic(name: str, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    problems += [
        f"topic {name} has {key!r}, not one of {', '.join(_TOPIC_KEYS)}" for key in given if key not in _TOPIC_KEYS
    ]
    fields: dict[str, Any] = {}
    for key, target in (("read_queues", "read_queues"), ("write_queues", "write_queues")):
        number = given.get(key, given.get("queues"))
        if number is not None and (type(number) is not int or not 0 < number <= MOST_QUEUES):
            problems.append(f"topic {name}: {key} is {number!r}, not a number from 1 to {MOST_QUEUES}")
        elif number is not None:
            fields[target] = number
    if "perm" in given:
        try:
            fields["permission"] = permission_of(str(given["perm"]))
        except ConfigError as error:
            problems.append(f"topic {name}: {error}")
    if "ordered" in given:
        fields["ordered"] = _switch(given["ordered"], f"topic {name}: ordered", problems)
    said = _mapping(given.get("attributes"), f"topics.{name}.attributes", problems)
    attributes = {key: _text(value) for key, value in said}
    if "type" in given:
        try:
            attributes |= attributes_of(str(given["type"]), None)
        except ConfigError as error:
            problems.append(f"topic {name}: {error}")
    return fields | ({"attributes": attributes} if attributes else {})


def _group(name: str, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    from skyrocket.cli.nouns.group import group_fields

    try:
        return group_fields([f"{key}={_text(value)}" for key, value in given.items()], None, None)
    except ConfigError as error:
        problems.append(f"group {name}: {str(error).removeprefix('--set ')}")
        return {}


def _user(name: str, given: Mapping[str, Any], problems: list[str]) -> "DeclaredUser":
    from skyrocket.client.admin.declarations import DeclaredUser

    variable = given.get("password_env")
    if set(given) - {"password_env", "super"}:
        problems.append(f"user {name}: only password_env and super can be said")
    password = os.environ.get(str(variable)) if variable else None
    if password is None:
        problems.append(f"user {name}: password_env must name a variable of the environment that has the password")
    if "super" not in given:
        return DeclaredUser(password)
    is_super = _switch(given["super"], f"user {name}: super", problems)
    return DeclaredUser(password, "Super" if is_super else "Normal")


def _switch(given: Any, place: str, problems: list[str]) -> bool:
    """A text is none: "false" in quotation marks would be true."""
    if not isinstance(given, bool):
        problems.append(f"{place} is {given!r}, neither true nor false")
    return given is True


def _rights(given: Any, problems: list[str]) -> Iterator[Any]:
    from skyrocket.client import Right

    if not isinstance(given, dict) or not {"subject", "resources", "actions"} <= set(given):
        problems.append(f"right {given!r}: subject, resources and actions must be said")
        return
    # What is not understood may have been meant to narrow the right down.
    unknown = [str(key) for key in given if key not in _RIGHT_KEYS]
    problems += [f"right of {given['subject']} has {key!r}, not one of {', '.join(_RIGHT_KEYS)}" for key in unknown]
    decision = str(given.get("decision", "Allow"))
    if decision not in _DECISIONS:
        problems.append(f"right of {given['subject']}: decision is {decision!r}, neither {' nor '.join(_DECISIONS)}")
    resources, actions, sources = (
        _list(given.get(key, []), f"right of {given['subject']}: {key}", problems)
        for key in ("resources", "actions", "from")
    )
    for resource in resources:
        found = problems_of(str(resource), list(map(str, actions)))
        problems += [f"right of {given['subject']}: {problem}" for problem in found]
        yield Right(
            subject_of(str(given["subject"])),
            resource_of(str(resource)),
            actions_of(map(str, actions)),
            decision,
            tuple(map(str, sources)),
        )


def _changes(plan: "Plan") -> Iterator[Change]:
    for topic in plan.topics:
        before = {} if topic.before is None else fields_of(topic.before)
        yield from differences(f"topic {topic.after.name}", str(topic.place), before, fields_of(topic.after))
    for group in plan.groups:
        before = {} if group.before is None else fields_of(group.before)
        yield from differences(f"group {group.after.name}", str(group.place), before, fields_of(group.after))
    for user in plan.users:
        yield Change(f"user {user.name}", str(user.place), "type", user.before, user.after)
    for each in plan.rights:
        known = None if each.before is None else shown_right(each.before)
        yield Change(
            f"rights of {each.after.subject}", str(each.place), each.after.resource, known, shown_right(each.after)
        )
    for setting in plan.settings:
        yield Change("settings", str(setting.place), setting.key, setting.before, setting.after)
