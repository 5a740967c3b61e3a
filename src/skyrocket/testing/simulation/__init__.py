"""A set of replicas in one process, driven by a seed: network, disks, clocks and faults are made up, the rest is real.

    python -m skyrocket.testing.simulation --seed 4711           replays one run, with its history as text
    python -m skyrocket.testing.simulation --seeds 0:20000       many runs; names the first seed that breaks a promise
    python -m skyrocket.testing.simulation --failover …          a set of three under controllers, with elections

`MasterStream`, `SlaveStream`, `Replicas` and the check of a joining slave are those of the broker; under
controllers `RoleBook`, `SyncSet`, the auto-switch streams and the controller's machine are the real ones too. A run is
a heap of events: what happens at which moment is drawn from the seed and nothing else, so the same seed gives the same
run.
"""
