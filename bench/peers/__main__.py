"""Skyrocket beside Apache RocketMQ and other message systems, one after the other on this machine.

For both RocketMQs one Java program on the official client 5.4.0: threads of synchronous sends, a push consumer that
takes all of them, batches of 16; then messages pulled raw. `pairs` are both with a slave beside the master, under raw
sends as in bench.replication. The other systems have their own load tools. `python` is bench.python_clients: all of
them and Kafka as a Python program sees them, which is the only table in which one kind of load is put on all systems.
Needs Java and Maven; what cannot be had is left out with the reason. A full run takes some 35 minutes: keep the
machine quiet. The two RocketMQs take turns, three rounds by default, since a shared machine gives now more, now less;
medians are printed beside the ratio of each round.

examples:
  python -m bench.peers                          everything
  python -m bench.peers --only apache skyrocket  the two RocketMQs
  python -m bench.peers --only pairs             both with an asynchronous and a synchronous slave
  python -m bench.peers --only python            every system by its Python client
  python -m bench.peers --quick                  seconds instead of minutes: shows that it works, measures nothing
  python -m bench.peers --last --write-docs      the newest results, unmeasured, into docs/internals/performance.md
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from tests.interop.apache import Apache, Unavailable, obtain

from bench.load import server_usage
from bench.load.measure import LoadFailed, Timing
from bench.peers import nats, rabbitmq, redis_streams, report
from bench.peers.comparison import ServerResult
from bench.peers.other_system import Missing, OtherResult, ToolFailed
from bench.peers.pairs import measure_pair
from bench.peers.processes import NotReady
from bench.peers.raw_pulls import RAW_PULLS, measure_raw_pulls
from bench.peers.rocketmq_client import ClientFailed, Load, measure
from bench.peers.rocketmq_servers import Server, apache_server, our_server
from bench.python_clients import comparison as python_clients
from bench.replication.servers import NotFollowed

_ROOT = Path(__file__).parent.parent.parent
_RESULTS = _ROOT / "bench" / "results"
_DOCS = _ROOT / "docs" / "internals" / "performance.md"
_VERSION = "5.4.0"
_QUIET_S = 5.0  # after the start, before idle memory is read
_OTHERS: dict[str, tuple[str, Callable[[float, float], OtherResult]]] = {
    "rabbitmq": ("RabbitMQ", rabbitmq.measure),
    "nats": ("NATS JetStream", nats.measure),
    "redis": ("Redis Streams", redis_streams.measure),
}
_PYTHON = "python"
_SYSTEMS = ("apache", "skyrocket", "pairs", *_OTHERS, _PYTHON)


def main() -> None:
    options = _options()
    by_tools = [system for system in options.only if system != _PYTHON]
    if by_tools:
        _by_their_tools(options)
    if _PYTHON in options.only:
        _by_python_clients(options)


def _by_their_tools(options: argparse.Namespace) -> None:
    if options.last:
        run = report.Run.load(_newest(options.results))
    else:
        run = _measure(options)
        kind = "quick" if options.quick else "peers"  # so that --last never takes a quick run for a measurement
        path = options.results / f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
        run.save(path)
        _say(f"written: {path}")
    if options.write_docs:
        report.write_docs(_DOCS, run)
        _say(f"written: {_DOCS}")
    if options.markdown:
        print(report.markdown(run))
    else:
        report.print_tables(Console(width=None if Console().is_terminal else 190), run)


def _by_python_clients(options: argparse.Namespace) -> None:
    keys = list(python_clients.SYSTEMS)
    if options.last:
        python_clients.show(*python_clients.kept(keys))
    else:
        python_clients.show(*python_clients.measure(keys, quick=options.quick))
    if options.write_docs:
        python_clients.write_docs()


def _measure(options: argparse.Namespace) -> report.Run:
    load = Load(
        threads=options.threads,
        instances=options.instances,
        warm_up_s=3.0 if options.quick else options.warm_up,
        seconds=2.0 if options.quick else options.seconds,
    )
    run = report.this_run(
        f"{load.threads} threads over {load.instances} connection(s), {load.body_bytes}-byte bodies, "
        f"asynchronous flush, 1 GB heap for Apache's broker, {load.warm_up_s:g} s of warm-up, "
        f"{load.seconds:g} s measured; medians of {options.rounds} round(s)"
    )
    if {"apache", "skyrocket", "pairs"} & set(options.only):
        try:
            apache = obtain(_VERSION)
        except Unavailable as reason:
            run.left_out["Apache RocketMQ and its client"] = str(reason)
        else:
            _measure_rocketmqs(options, apache, load, run)
    for key, (name, measure_other) in _OTHERS.items():
        if key not in options.only:
            continue
        _say(f"{name} …")
        try:
            run.others.append(measure_other(load.warm_up_s, load.seconds))
        except (Missing, ToolFailed) as reason:
            run.left_out[name] = str(reason)
    return run


def _measure_rocketmqs(options: argparse.Namespace, apache: Apache, load: Load, run: report.Run) -> None:
    for number in range(options.rounds):
        turns = ["apache", "skyrocket"] if number % 2 == 0 else ["skyrocket", "apache"]
        for turn in (turn for turn in turns if turn in options.only):
            _say(f"round {number + 1} of {options.rounds}")
            if turn == "apache":
                run.apache.append(_rocketmq(f"Apache RocketMQ {_VERSION}", apache, lambda: apache_server(apache), load))
            else:
                run.ours.append(_rocketmq("Skyrocket", apache, lambda: our_server(options.set), load))
    if "pairs" in options.only:
        try:
            run.apache_pair = measure_pair(apache, load.warm_up_s, load.seconds)
            run.our_pair = measure_pair(None, load.warm_up_s, load.seconds)
        except (LoadFailed, NotReady, NotFollowed) as error:
            sys.exit(f"bench.peers: pairs: {error}")


def _rocketmq(
    name: str, apache: Apache, start: Callable[[], AbstractContextManager[Server]], load: Load
) -> ServerResult:
    _say(f"{name} …")
    try:
        with start() as server:
            time.sleep(_QUIET_S)
            idle = server_usage.memory(server.pids)
            measured = measure(apache, server.name_server, load, server.pids)
            timing = Timing(load.warm_up_s / 5, load.seconds / 2)
            measured.phases[RAW_PULLS] = measure_raw_pulls(server, timing)
    except (ClientFailed, LoadFailed, NotReady) as error:
        sys.exit(f"bench.peers: {name}: {error}")
    for phase, result in measured.phases.items():
        _say(f"  {phase}: {result.rate:,.0f} msg/s, {result.cpu_us:.1f} µs of server CPU each, {result.errors} errors")
    return ServerResult(name, server.seconds_to_ready, idle, measured)


def _newest(results: Path) -> Path:
    found = sorted(results.glob("peers-*.json"))
    if not found:
        raise SystemExit(f"no results in {results}: run without --last first")
    return found[-1]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=_SYSTEMS, default=list(_SYSTEMS), metavar="SYSTEM",
                        help=f"some of: {', '.join(_SYSTEMS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="3 s of warm-up, 2 s measured")
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds (default: 30)")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measured phase (default: 20)")
    parser.add_argument("--rounds", type=int, default=3, help="of the two RocketMQs, in turn (default: 3)")
    parser.add_argument("--threads", type=int, default=64, help="of synchronous sends (default: 64)")
    parser.add_argument("--instances", type=int, default=1, help="client instances, a connection each (default: 1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for Skyrocket")
    parser.add_argument("--last", action="store_true", help="measure nothing, show the newest results")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/internals/performance.md")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="where results are written")
    options = parser.parse_args()
    if options.quick and options.write_docs:
        parser.error("--quick measures nothing that belongs into the docs: leave out one of --quick and --write-docs")
    return options


if __name__ == "__main__":
    main()
