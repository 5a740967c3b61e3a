"""Load a RocketMQ-compatible broker and print rate, latency, and what the server spends per message.

examples:
  python -m bench.load --start                          our own broker: start, every scenario, stop
  python -m bench.load --start send --seconds 10        one scenario
  python -m bench.load --broker 127.0.0.1:10911 send    a broker that runs already, ours or Apache's
  python -m bench.load --start send --window 16         pipelined: 16 requests in flight per connection
  python -m bench.load --start send --rate 5000         open loop: latency counts from when each request was due
  python -m bench.load --start batch pull --json        batches of 16, then pull what was sent

A closed loop (no --rate) asks as soon as it has an answer: it shows the highest rate. Its percentiles hide what would
have been asked while the server stalled; for honest latency use an open loop below the highest rate.
CPU and memory are read from /proc for the process that listens on the broker's port (or --pid).
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence

from rich.console import Console

from bench.load import report, server_usage
from bench.load.measure import Figures, LoadFailed, Timing, measure
from bench.load.own_server import NotStarted, own_server
from bench.load.scenario import PULL, SEND, Scenario

_KINDS = {
    "send": "one message per request",
    "send-1k": "the same with bodies of 1 KiB",
    "pipelined": "16 requests in flight per connection",
    "batch": "batches of --batch messages",
    "timer": "one message per request, to be delivered in an hour",
    "pull": "pull what the scenarios before have sent, again and again, one connection per queue",
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    console = Console(width=None if Console().is_terminal else 190)
    try:
        with _server(options) as (address, pids):
            figures = _run(options, address, pids)
    except (LoadFailed, NotStarted) as error:
        sys.exit(f"bench.load: {error}")
    if options.json:
        print(report.as_json(figures))
    else:
        report.print_table(console, figures)
    if any(one.errors or not one.messages for one in figures):
        sys.exit(1)


def _run(options: argparse.Namespace, address: tuple[str, int], pids: Sequence[int]) -> list[Figures]:
    topic = options.topic or f"Load{time.time_ns() // 1_000_000}"
    timing = Timing(options.warm_up, options.seconds)
    figures = []
    for kind in options.scenarios or _KINDS:
        print(f"{kind} …", file=sys.stderr, flush=True)
        figures.append(measure(_scenario(kind, options, address, topic), timing, options.processes, pids))
    return figures


def _scenario(kind: str, options: argparse.Namespace, address: tuple[str, int], topic: str) -> Scenario:
    pulls = kind == "pull"
    return Scenario(
        kind=PULL if pulls else SEND,
        address=address,
        topic=topic,
        connections=options.queues if pulls else options.connections,
        window=1 if pulls else 16 if kind == "pipelined" else options.window,
        rate=None if pulls else options.rate,
        body_size=1024 if kind == "send-1k" else options.body,
        batch=options.batch if kind == "batch" else 1,
        queues=options.queues,
        tag=options.tag,
        pull_at_most=options.pull_at_most,
        timer_seconds=3600 if kind == "timer" else 0,
    )


@contextlib.contextmanager
def _server(options: argparse.Namespace) -> Iterator[tuple[tuple[str, int], Sequence[int]]]:
    if options.start:
        with own_server(options.set) as server:
            print(f"skyrocket standalone, process {server.pid}, is ready", file=sys.stderr, flush=True)
            yield server.broker, [server.pid]
        return
    host, _, port = options.broker.rpartition(":")
    pids = options.pid or server_usage.pids_listening_on(int(port))
    if not pids:
        print(f"no process of ours listens on port {port}: CPU and memory stay unknown", file=sys.stderr)
    yield (host or "127.0.0.1", int(port)), pids


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = "; ".join(f"{name}: {text}" for name, text in _KINDS.items())
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default all of: {kinds}")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--broker", metavar="HOST:PORT", help="the broker's own address, not the name server's")
    where.add_argument("--start", action="store_true", help="start our own standalone server and stop it at the end")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for --start")
    parser.add_argument("--pid", type=int, action="append", help="a process of the server; may be given several times")
    parser.add_argument("--connections", type=_positive, default=64)
    parser.add_argument("--window", type=_positive, default=1, help="requests in flight per connection, closed loop")
    parser.add_argument("--rate", type=float, help="requests per second of all connections together: an open loop")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of the measured part (default: 5)")
    parser.add_argument("--warm-up", type=float, default=2.0, help="seconds of load before it (default: 2)")
    parser.add_argument("--body", type=_positive, default=128, help="bytes (default: 128)")
    parser.add_argument("--batch", type=_positive, default=16, help="messages of a batch (default: 16)")
    parser.add_argument("--queues", type=_positive, default=8, help="queues of the topic (default: 8)")
    parser.add_argument("--tag", default="", help="tag of the messages (default: none)")
    parser.add_argument("--topic", help="default: a new one, made by the first send")
    parser.add_argument("--pull-at-most", type=_positive, default=32, help="messages of a pull (default: 32)")
    parser.add_argument("--processes", type=_positive, default=1, help="load processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="one line of JSON per scenario instead of the table")
    options = parser.parse_args(arguments)
    for kind in options.scenarios:
        if kind not in _KINDS:
            parser.error(f"no scenario {kind!r}; there are {', '.join(_KINDS)}")
    if options.broker is not None and not options.broker.rpartition(":")[2].isdigit():
        parser.error(f"--broker {options.broker}: needs HOST:PORT, as 127.0.0.1:10911")
    if options.rate is not None and options.rate <= 0:
        parser.error("--rate must be above 0")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


if __name__ == "__main__":
    main()
