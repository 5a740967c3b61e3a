"""Random sends, recalls, waits, saves, clean stops and crashes against a simple model."""

from tests.unit.broker.timer.timer_model import SETTINGS, AgainstAModel

TestAgainstAModel = AgainstAModel.TestCase
TestAgainstAModel.settings = SETTINGS
