"""`skyrocket pipeline lag`: who is behind, by how much, and what would help.

samples     who was where, when: asked from the brokers, or read from a store directory
inputs      the two DataFrames that the job takes
job         the job itself
sizing      consumers, threads and queues for a rate
"""

from skyrocket.pipeline.jobs.lag.job import LagLimits, Plan, offsets_to_read, run

__all__ = ["LagLimits", "Plan", "offsets_to_read", "run"]
