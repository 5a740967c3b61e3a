"""What makes two messages the same: a column, the message's keys, a property, or a place in its JSON body.

    keys              the KEYS property as it stands            uniqKey    the client's message id (any column)
    property:orderId  a property
    json:$.order.id   in a body of JSON

A message id is not enough for idempotence: an application that sends an order twice gives it two ids.
"""

import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from skyrocket.columns.schema import COLUMNS
from skyrocket.errors import ConfigError
from skyrocket.pipeline.options import nearest

if TYPE_CHECKING:
    from pyspark.sql import Column

_JSON_PATH: Final = re.compile(r"\$(?:\.[\w-]+|\['[^']+'\]|\[\d+\])+")
_NO_KEYS: Final = ("body", "properties")


def key_column(spec: str) -> "Column":
    """As text, null where a message has none; raises ConfigError."""
    check_key(spec)
    kind, _, rest = spec.partition(":")
    if kind == "property" and rest:
        return fn.nullif(fn.col("properties")[rest], fn.lit(""))
    if kind == "json":
        return fn.get_json_object(fn.col("body").cast("string"), rest)
    return fn.nullif(fn.col(spec).cast("string"), fn.lit(""))


def check_key(spec: str) -> None:
    """Raises ConfigError for what is no key; needs no Spark."""
    kind, colon, rest = spec.partition(":")
    if kind == "property" and rest:
        return
    if kind == "json" and colon:
        if not _JSON_PATH.fullmatch(rest):
            raise ConfigError(f"{spec!r} has no path into JSON: write it as json:$.order.id")
        return
    if spec in COLUMNS and spec not in _NO_KEYS:
        return
    offered = [name for name in COLUMNS if name not in _NO_KEYS]
    meant = None if spec in _NO_KEYS else nearest(spec, offered)
    advice = f"did you mean {meant}?" if meant else "write keys, uniqKey, property:NAME or json:$.path"
    raise ConfigError(f"{spec!r} is not a key of a message; {advice}")


def columns_for(spec: str) -> tuple[str, ...]:
    """The columns that the key is made of."""
    if spec.startswith("property:"):
        return ("properties",)
    return ("body",) if spec.startswith("json:") else (spec,)
