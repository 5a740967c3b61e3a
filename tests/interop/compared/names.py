"""All of mqadmin's names: those that both tools run, scene by scene, and the others with the reason."""

from dataclasses import replace

from tests.interop.compared.accounts import ACCOUNTS
from tests.interop.compared.controllers import CONTROLLERS
from tests.interop.compared.plain import PLAIN
from tests.interop.compared.verb import V4, Compared

# What came with 5.0 is asked of a broker of 4.9.7 too, once for each name: it refuses, and both tools say so.
_REFUSED_BY_4 = tuple(
    replace(verb, servers=(V4,), command=verb.command.replace("{c}", "{b}"))
    for verb in {verb.name: verb for verb in reversed((*ACCOUNTS, *CONTROLLERS))}.values()
    if verb.name not in {each.name for each in PLAIN}
)

COMPARED: dict[str, tuple[Compared, ...]] = {
    "plain": PLAIN + _REFUSED_BY_4,
    "users": ACCOUNTS,
    "controllers": CONTROLLERS,
}

# The other names, and why they are not compared.
ELSEWHERE = {
    "startMonitoring": "never ends, and RocketMQ's writes a log where ours prints",
    "updateStaticTopic": "not made by our tool: it says so and leaves with 1",
    "remappingStaticTopic": "not made by our tool: it says so and leaves with 1",
}
