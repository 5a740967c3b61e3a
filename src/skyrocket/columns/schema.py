"""The row schema of everything that hands out messages as columns: a column per field of a stored message.

A reader prunes by naming fewer columns; only these are then decoded.
"""

from collections.abc import Iterable
from typing import Literal

import pyarrow as pa

from skyrocket.config.sections.setting import nearest
from skyrocket.errors import ConfigError

PropertiesForm = Literal["map", "raw", "none"]
PROPERTIES_FORMS: tuple[PropertiesForm, ...] = ("map", "raw", "none")

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "brokerName": pa.string(),
    "queueId": pa.int32(),
    "queueOffset": pa.int64(),
    "commitLogOffset": pa.int64(),
    "msgId": pa.string(),  # the broker's id: store host and commit-log offset
    "uniqKey": pa.string(),  # the client's id
    "keys": pa.string(),
    "tags": pa.string(),
    "bornTimestamp": TIMESTAMP,
    "bornHost": pa.string(),
    "storeTimestamp": TIMESTAMP,
    "storeHost": pa.string(),
    "reconsumeTimes": pa.int32(),
    "sysFlag": pa.int32(),
    "flag": pa.int32(),
    "preparedTransactionOffset": pa.int64(),
    "bodyCRC": pa.int32(),
    "body": pa.binary(),
    "properties": pa.map_(pa.string(), pa.string()),
}


def arrow_schema(names: Iterable[str] | None = None, properties: PropertiesForm = "map") -> pa.Schema:
    """The columns of these names (all when None) in the order given; `none` leaves the properties out."""
    table = dict(COLUMNS)
    if properties == "raw":
        table["properties"] = pa.binary()  # the stored text, undecoded
    if properties == "none":
        del table["properties"]
    return pa.schema([(_known(name, table), table[name]) for name in (table if names is None else names)])


def _known(name: str, table: dict[str, pa.DataType]) -> str:
    if name in table:
        return name
    if name == "properties":
        raise ConfigError("the option properties=none leaves out the column 'properties'; set it to map or raw")
    raise ConfigError(f"there is no column {name!r}{nearest(name, table) or '; there are: ' + ', '.join(table)}")
