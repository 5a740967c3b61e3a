"""`skyrocket cluster`: all brokers at a glance."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.broker_rows import LISTED, broker_row, whole
from skyrocket.cli.nouns.operator import ClusterNameOption, Operator, operator_command, verbs
from skyrocket.cli.nouns.watching import Watched, WatchOption, repeat
from skyrocket.cli.output.rows import Column

if TYPE_CHECKING:
    from skyrocket.client import Admin

cluster = verbs("Brokers and their rates, at a glance.")

TOTALS: Final = (
    Column("cluster"),
    Column("broker"),
    Column("role"),
    Column("inYesterday", "IN YESTERDAY", number=True),
    Column("outYesterday", "OUT YESTERDAY", number=True),
    Column("inToday", "IN TODAY", number=True),
    Column("outToday", "OUT TODAY", number=True),
)


@cluster.command("list", cls=Watched)
@operator_command("cluster list")
def list_clusters(
    operator: Operator,
    name: ClusterNameOption = None,
    totals: Annotated[bool, typer.Option("--totals", help="Messages of yesterday and today instead of rates.")] = False,
    watch: WatchOption = None,
) -> None:
    """Brokers with role, version, rates and disk."""

    def look() -> None:
        found = operator.ask(lambda admin: admin.runtime_info(cluster=name))
        if totals:
            operator.show(TOTALS, [_totals(place, info) for place, info in found.items()])
        else:
            operator.show(LISTED, [broker_row(place, info) for place, info in found.items()], empty="no brokers")

    repeat(look, watch, operator)


def _totals(place: Any, info: dict[str, str]) -> dict[str, Any]:
    row = {"cluster": place.cluster, "broker": place.broker_name, "role": broker_row(place, info)["role"]}
    for name, key in (("in", "msgPutTotal"), ("out", "msgGetTotal")):
        yesterday, today, now = (
            whole(info, f"{key}{when}") for when in ("YesterdayMorning", "TodayMorning", "TodayNow")
        )
        row |= {f"{name}Yesterday": today - yesterday, f"{name}Today": now - today}
    return row


@cluster.command()
@operator_command("cluster topics")
def topics(operator: Operator, name: Annotated[str, typer.Argument(help="The cluster.", show_default=False)]) -> None:
    """The topics that name servers know in a cluster."""

    async def look(admin: "Admin") -> list[str]:
        await admin.brokers(cluster=name)  # raises NotFound
        return await admin.topics(cluster=name)

    operator.show((Column("topic"),), [{"topic": topic} for topic in operator.ask(look)])
