"""Skyrocket beside other message systems as a Python program sees them: `python -m bench.python_clients`.

Every system with its own client, asyncio clients on the same event loop (uvloop), one after the other on this machine,
messages of 128 bytes: sends that are awaited with 64 in flight, sends by the client's own batching, consumption message
by message and in bulk, latency from send to reader at a fixed rate, what the server spends, and the time from the start
of the server to the first message. What cannot be had is left out with the reason. Keep the machine quiet.

Each system's newest figures are kept, so the systems may be measured one at a time and shown together. `python -m
bench.peers` does the same as its last part.

examples:
  python -m bench.python_clients                         everything, some ten minutes
  python -m bench.python_clients --only skyrocket kafka  a minute each
  python -m bench.python_clients --quick                 shows that it works, measures nothing
  python -m bench.python_clients --last --write-docs     the newest of each system into docs/internals/performance.md
"""

import argparse

from bench.python_clients import comparison


def main() -> None:
    options = _options()
    if options.last:
        comparison.show(*comparison.kept(options.only))
    else:
        comparison.show(*comparison.measure(options.only, quick=options.quick))
    if options.write_docs:
        comparison.write_docs(options.only)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.python_clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(comparison.SYSTEMS)
    parser.add_argument(
        "--only", nargs="+", choices=comparison.SYSTEMS, default=list(comparison.SYSTEMS), metavar="SYSTEM", help=names
    )
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: shows that it works")
    parser.add_argument("--last", action="store_true", help="measure nothing, show the newest figures of each system")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/internals/performance.md")
    options = parser.parse_args()
    if options.quick and options.write_docs:
        parser.error("--quick measures nothing that belongs into the docs: leave out one of --quick and --write-docs")
    return options


if __name__ == "__main__":
    main()
