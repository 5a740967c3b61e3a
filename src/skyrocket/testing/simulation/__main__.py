"""Runs of the simulation by seed; see the package."""

import argparse
import sys

from skyrocket.testing.simulation.failover_run import FailoverSimulation
from skyrocket.testing.simulation.run import PromiseBroken, Simulation


def main() -> int:
    """Returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m skyrocket.testing.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay one run and print its history")
    parser.add_argument("--seeds", default="0:200", help="first:end of many runs")
    parser.add_argument("--failover", action="store_true", help="a set of three under controllers")
    options = parser.parse_args()
    kind = FailoverSimulation if options.failover else Simulation
    if options.seed is not None:
        return _run(kind(options.seed), options.seed, show=True)
    first, _, end = options.seeds.partition(":")
    broken = [seed for seed in range(int(first), int(end)) if _run(kind(seed), seed, show=False)]
    sys.stdout.write(f"{int(end) - int(first)} runs, {len(broken)} broke a promise {broken[:10] or ''}\n")
    return 1 if broken else 0


def _run(simulation: Simulation | FailoverSimulation, seed: int, *, show: bool) -> int:
    try:
        simulation.run()
        verdict = f"kept every promise: {len(simulation.checker.accepted)} acknowledged"
    except PromiseBroken as broken:
        verdict = f"BROKEN: {broken}"
    if show:
        sys.stdout.write("\n".join(simulation.world.history) + "\n")
    if show or verdict.startswith("BROKEN"):
        sys.stdout.write(f"seed {seed} {verdict}\n")
    return int(verdict.startswith("BROKEN"))


if __name__ == "__main__":
    sys.exit(main())
