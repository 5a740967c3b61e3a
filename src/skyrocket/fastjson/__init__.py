"""The JSON that Java peers write: standard JSON, and the liberties that fastjson takes with it.

`loads` accepts both: unquoted integer keys `{0:12}`, objects as keys `{{"queueId":0}:12}`, unquoted names, single
quotes, trailing commas, `{"$ref":"$.a.b"}`. `dumps` writes RocketMQ's config files byte for byte, and the compact
form of the wire. Used by everything that meets such JSON, at rest or in motion; knows nothing of what is in it.

    reader      text → values, with the line and column of what is wrong
    references  `$ref` → the object meant
    writer      values → text in one of three dialects
"""

from skyrocket.fastjson.reader import loads
from skyrocket.fastjson.values import MAX_BYTES, MAX_DEPTH, FastJsonError, Json, JsonKey, ObjectKey
from skyrocket.fastjson.writer import Dialect, dumps

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Dialect", "FastJsonError", "Json", "JsonKey", "ObjectKey", "dumps", "loads"]
