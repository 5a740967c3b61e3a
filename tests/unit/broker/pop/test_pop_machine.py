"""Random pops, acknowledgements, changes, waits, saves, restarts and kills against a simple model.

A message that was popped is either acknowledged in time, and then never seen again, or handed out again, but not before
its time is over. A kill may bring messages back that were touched after the last save; nothing ever gets lost.
"""

from hypothesis import HealthCheck, settings

from tests.unit.broker.pop.pop_machine import PopMachine

PopMachine.TestCase.settings = settings(
    max_examples=10, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestPopMachine = PopMachine.TestCase
