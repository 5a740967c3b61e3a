"""The options of format("rocketmq-commitlog")."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from skyrocket.columns.schema import PROPERTIES_FORMS, PropertiesForm
from skyrocket.pipeline.commit_log.log_files import local_path
from skyrocket.pipeline.commit_log.selection import Selection
from skyrocket.pipeline.commit_log.splits import Bounds
from skyrocket.pipeline.options import Options

FORMAT = "rocketmq-commitlog"
OPTIONS = tuple(
    """path paths splitBytes topics tags keys startingTimestamp endingTimestamp startingOffset endingOffset brokerName
    properties decompress verifyCrc onDamage damageLocation view""".split()
)
SPLIT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class CommitLogSettings:
    """What the options say, checked."""

    paths: tuple[str, ...]
    broker_names: tuple[str | None, ...]  # one for each path
    split_bytes: int
    bounds: Bounds
    selection: Selection
    properties: PropertiesForm
    decompress: bool
    verify_crc: bool
    report_damage: bool
    damage_location: Path | None
    damage_view: bool


def read_settings(given: Mapping[str, str]) -> CommitLogSettings:
    """The settings of these options; raises OptionError where one cannot be."""
    options = Options(given, OPTIONS, FORMAT)
    paths = (options.required("path", "/data/store"),) if not options.has("paths") else options.words("paths")
    if options.has("path") and options.has("paths"):
        paths = (options.required("path", ""), *paths)
    first_time = options.whole("startingTimestamp", None)
    end_time = options.whole("endingTimestamp", None)
    report = options.choice("onDamage", ("fail", "report"), "fail") == "report"
    damage_view = options.choice("view", ("messages", "damage"), "messages") == "damage"
    location = options.text("damageLocation", None)
    if location is not None and not report:
        raise options.error("damageLocation", 'needs .option("onDamage", "report"): a read that fails writes nothing')
    tags = tuple(tag.strip() for tag in options.text("tags", "").replace("||", ",").split(",") if tag.strip())
    return CommitLogSettings(
        paths=paths,
        broker_names=_broker_names(options, len(paths)),
        split_bytes=options.size_bytes("splitBytes", SPLIT_BYTES),
        bounds=Bounds(options.whole("startingOffset", 0), options.whole("endingOffset", None), first_time, end_time),
        selection=Selection(options.words("topics"), tags, options.words("keys"), first_time, end_time),
        properties=cast(PropertiesForm, options.choice("properties", PROPERTIES_FORMS, "map")),
        decompress=options.flag("decompress", True),
        verify_crc=options.flag("verifyCrc", False),
        report_damage=report,
        damage_location=None if location is None else local_path(location),
        damage_view=damage_view,
    )


def _broker_names(options: Options, count: int) -> tuple[str | None, ...]:
    names = options.words("brokerName")
    if len(names) <= 1:
        return (names[0] if names else None,) * count
    if len(names) != count:
        raise options.error("brokerName", f"has {len(names)} names for {count} paths; give one, or one for each path")
    return names
