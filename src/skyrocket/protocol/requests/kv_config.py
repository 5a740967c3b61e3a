"""Name server: small values by namespace and key, and its own settings."""

from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Request, answer, request


@request(RequestCode.PUT_KV_CONFIG)
class PutKvConfig(Request[Header]):
    """Keep a value; without namespace or key the handler refuses."""

    namespace: str | None = None
    key: str | None = None
    value: str | None = None


@answer
class GetKvConfigAnswer(Header):
    """The value."""

    value: str | None = None


@request(RequestCode.GET_KV_CONFIG, answer=GetKvConfigAnswer)
class GetKvConfig(Request[GetKvConfigAnswer]):
    """One value."""

    namespace: str
    key: str


@request(RequestCode.DELETE_KV_CONFIG)
class DeleteKvConfig(Request[Header]):
    """Forget a value."""

    namespace: str
    key: str


@request(RequestCode.GET_KVLIST_BY_NAMESPACE, answer_body=KvTable)
class GetKvListByNamespace(Request[Header]):
    """All values of a namespace."""

    namespace: str


@request(RequestCode.UPDATE_NAMESRV_CONFIG)
class UpdateNamesrvConfig(Request[Header]):
    """Change settings; the body is Java properties text."""


@request(RequestCode.GET_NAMESRV_CONFIG)
class GetNamesrvConfig(Request[Header]):
    """All settings as Java properties text."""
