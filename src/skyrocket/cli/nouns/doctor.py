"""`skyrocket doctor`: what is wrong with a cluster, or why a group does not consume."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.moments import span
from skyrocket.cli.nouns.operator import Operator, operator_command
from skyrocket.cli.output.rows import Column, Row
from skyrocket.cli.program.exit_codes import EXIT_FAILED
from skyrocket.cli.program.moments import seconds_of
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client.doctor.facts import ClusterFacts
    from skyrocket.client.doctor.finding import Finding

FINDINGS: Final = (Column("severity"), Column("code"), Column("where"), Column("what"), Column("remedy"))


class FailOn(Enum):
    """What counts as an illness."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


@operator_command("doctor")
def doctor(
    operator: Operator,
    group: Annotated[str | None, typer.Option("--group", help="Say why this group does not consume.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Look at this topic alone.")] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", help="Look at offsets twice, so long apart.  [default: 0, with --group 5s]"),
    ] = None,
    notes: Annotated[bool, typer.Option("--notes", help="Also say what is no illness, but worth knowing.")] = False,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="What makes the exit code 1.")] = FailOn.WARNING,
) -> None:
    """Examine a cluster from where you are: name servers, brokers, topics, groups; each finding with its remedy.

    Exit code 0: healthy, 1: something is wrong, or it could not be examined, 2: wrong usage, 4: no such group or topic.
    """
    from skyrocket.client import NotFound
    from skyrocket.client.doctor.examination import examine
    from skyrocket.client.doctor.finding import Severity
    from skyrocket.client.doctor.gathering import Scope

    seconds = seconds_of(sample) if sample is not None else (5.0 if group else 0.0)
    scope = Scope(group, topic, seconds)
    facts, findings = operator.ask(lambda admin: examine(admin, scope))
    operator.failures.clear()  # who did not answer is among the findings
    shown = [each for each in findings if notes or each.severity is not Severity.NOTE]
    if topic is not None and topic not in facts.topics and not _is_partly_silent(facts):
        raise NotFound(f"there is no topic {topic}: check its name, `skyrocket topic list` has all")
    if group is not None:
        _explain(operator, facts, shown, group)
    elif operator.output.is_for_people:
        _print_findings(operator, facts, shown)
    else:
        operator.show(FINDINGS, [_row(each) for each in shown])
    bad = {FailOn.ERROR: {Severity.ERROR}, FailOn.WARNING: {Severity.ERROR, Severity.WARNING}, FailOn.NEVER: set()}
    if any(each.severity in bad[fail_on] for each in shown):
        raise typer.Exit(EXIT_FAILED)


def _is_partly_silent(facts: "ClusterFacts") -> bool:
    """Then what is not there may be at those who did not answer; the findings name them."""
    return len(facts.answering) < len(facts.brokers) or not facts.brokers


def _row(finding: "Finding") -> Row:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "where": finding.where,
        "what": finding.what,
        "remedy": finding.remedy,
    }


def _print_findings(operator: Operator, facts: "ClusterFacts", shown: "list[Finding]") -> None:
    for each in shown:
        operator.say_safely(f"{each.severity.value.upper():7} {each.code}  {each.where}: {each.what}")
        operator.say_safely(f"        → {each.remedy}")
    known = ((facts.brokers, "broker"), (facts.topics, "topic"), (facts.groups, "group"))
    looked = ", ".join(counted(len(each), word) for each, word in known)
    operator.say(f"{'healthy' if not shown else counted(len(shown), 'finding')}: {looked} were examined")


def _explain(operator: Operator, facts: "ClusterFacts", shown: "list[Finding]", name: str) -> None:
    from skyrocket.client import NotFound
    from skyrocket.client.doctor.explanation import outlook_of, steps_of

    if name not in facts.groups:
        if not facts.brokers:
            raise ConfigError("no broker could be asked; `skyrocket doctor` says why")
        raise NotFound(
            f"there is no group {name}: check its name, `skyrocket group list` has all. A consumer whose topics do not "
            "exist may be known to nobody: its own log names them"
        )
    group = facts.groups[name]
    outlook = outlook_of(facts, group)
    steps = steps_of(facts, group, shown)
    if not operator.output.is_for_people:
        operator.show_object(
            {
                "group": name,
                "lag": outlook.lag,
                "behindSeconds": outlook.behind_seconds,
                "inPerSecond": outlook.in_per_second,
                "outPerSecond": outlook.out_per_second,
                "cause": outlook.cause,
                "goneInSeconds": outlook.gone_in_seconds,
                "steps": [{"step": s.name, "findings": [dict(_row(f)) for f in s.findings]} for s in steps],
            }
        )
        return
    for step in steps:
        operator.say(f"{'✗' if step.findings else '✓'} {step.name}")
        for each in step.findings:
            operator.say_safely(f"    {each.severity.value} {each.code}: {each.what}")
            operator.say_safely(f"    → {each.remedy}")
    age = "nobody knows how long" if outlook.behind_seconds is None else span(outlook.behind_seconds)
    behind = f", the oldest for {age}" if outlook.lag else ""
    gone = "never at these rates" if outlook.gone_in_seconds is None else f"in {span(outlook.gone_in_seconds)}"
    wait = counted(outlook.lag, "message waits", "messages wait")
    operator.say(
        f"{wait}{behind}; {outlook.in_per_second:.1f} come and {outlook.out_per_second:.1f} are consumed per second"
    )
    operator.say_safely(f"cause: {outlook.cause}" + ("" if outlook.lag == 0 else f"; gone {gone}"))
