"""`skyrocket pipeline replay`: send messages again, chosen by time, key, tag, group or list, at a bounded rate.

inputs      the messages to choose from
steps       DataFrame → DataFrame: which are sent, and as what
rounds      what is sent when
sending     round after round, through the sink
progress    what earlier runs have sent
job         the job itself
"""

from skyrocket.pipeline.jobs.replay.inputs import read_list
from skyrocket.pipeline.jobs.replay.job import checked_target, run
from skyrocket.pipeline.jobs.replay.progress import Queue, default_path, open_progress
from skyrocket.pipeline.jobs.replay.rounds import Sending, portions
from skyrocket.pipeline.jobs.replay.sending import of_round
from skyrocket.pipeline.jobs.replay.steps import Choice, chosen, outgoing, unconsumed

__all__ = [
    "Choice",
    "Queue",
    "Sending",
    "checked_target",
    "chosen",
    "default_path",
    "of_round",
    "open_progress",
    "outgoing",
    "portions",
    "read_list",
    "run",
    "unconsumed",
]
