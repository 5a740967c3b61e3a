"""A program's settings, gathered section by section: the .conf file, then the environment, then options."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import typer

from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import gather, parse_properties, properties_text, shown_pairs_of, unknown_settings
from skyrocket.errors import ConfigError

Section = TypeVar("Section")


class Sections:
    """The sections of one program; `sections[StoreConfig]` is the one of that type."""

    def __init__(self, given: Mapping[type, Any], said: Collection[str] = ()) -> None:
        self._given = dict(given)
        self._said = frozenset(said)

    def __getitem__(self, kind: type[Section]) -> Section:
        return cast(Section, self._given[kind])

    def changed(self, kind: type, **values: Any) -> "Sections":
        """A copy with other values in one section."""
        return Sections({**self._given, kind: replace(self._given[kind], **values)}, self._said)

    def was_said(self, key: str) -> bool:
        """Whether somebody chose the value of this key, be it the default; programs choose values of their own."""
        return key in self._said

    def text(self) -> str:
        """Every setting as a line of a .conf file."""
        pairs: dict[str, str] = {}
        for section in self._given.values():
            pairs |= shown_pairs_of(section)
        return properties_text(pairs)


def read_pairs(
    command: str,
    kinds: Sequence[type],
    accepted: Collection[str],
    *,
    conf: Path | None,
    prefix: str,
    options: Mapping[str, str],
    single: Sequence[str],
    assumed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The text values by RocketMQ's keys: `assumed` above file and environment, --set above that, options above all.

    An unknown --set is an error; unknown settings elsewhere are reported and ignored.
    """
    singles = parse_properties("\n".join(single), "--set")
    for warning in unknown_settings(singles, kinds, accepted):
        raise ConfigError(f"--set: {warning}")
    given = {**(assumed or {}), **singles, **options}
    pairs = gather(kinds, conf=conf, environment=os.environ, prefix=prefix, options=given)
    for warning in unknown_settings(pairs, kinds, accepted):
        typer.echo(f"skyrocket {command}: {warning}", err=True)
    return pairs


def sections_from(
    pairs: Mapping[str, str], kinds: Sequence[type], defaults: Mapping[str, str] | None = None
) -> Sections:
    """Each section with what belongs to it; raises ConfigError for a value that it does not take.

    `defaults` are the program's, below all that was said.
    """
    all_pairs = {**(defaults or {}), **pairs}
    return Sections({kind: section_from(kind, all_pairs, allow_unknown=True) for kind in kinds}, pairs)
