"""`skyrocket pipeline replay`: send messages again, chosen by time, key, tag, group or list, at a bounded rate.

inputs      the messages to choose from
steps       DataFrame → DataFrame: which are sent, and as what
rounds      what is sent when
sending     round after round, through the sink
progress    what earlier runs have sent
job         the job itself
"""

from skyrocket.pipeline.jobs.replay.job import checked_target, run
from skyrocket.pipeline.jobs.replay.rounds import Sending
from skyrocket.pipeline.jobs.replay.steps import Choice, chosen

__all__ = ["Choice", "Sending", "checked_target", "chosen", "run"]
