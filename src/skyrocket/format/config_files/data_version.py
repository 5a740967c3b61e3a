"""The `dataVersion` object that most files begin with."""

from skyrocket.fastjson.bean import INTEGER, Field, bean
from skyrocket.model.data_version import DataVersion

DATA_VERSION = bean(
    DataVersion,
    Field("counter", "counter", INTEGER),
    Field("stateVersion", "state_version", INTEGER, since_5=True),
    Field("timestamp", "timestamp", INTEGER),
)
