"""etcd's v3 API as JSON over HTTP: keys and values in base64, 64-bit numbers as text. Several endpoints, one at a time.

A call that did not reach an endpoint goes to the next. One that may have reached it is only repeated when that cannot
do harm.
"""

import base64
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import httpx

from skyrocket.controller.engines.engine import EngineUnavailable
from skyrocket.controller.engines.reaching import innermost_reason, not_reached

CALL_SECONDS: Final = 2.0
_WRONG_TOKEN: Final = ("invalid auth token", "user name is empty", "auth: token is not provided")


class KeyValue(NamedTuple):
    """One key: its value, the revision that created it and the one that last changed it."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class EtcdGateway:
    """Calls to a cluster of etcd."""

    def __init__(self, hosts: Sequence[str], account: tuple[str, str] | None, tls: ssl.SSLContext | None) -> None:
        scheme = "http" if tls is None else "https"
        self._endpoints = [f"{scheme}://{host}" for host in hosts]
        self._account = account
        self._token: str | None = None
        self._http = httpx.AsyncClient(
            verify=True if tls is None else tls,
            timeout=httpx.Timeout(CALL_SECONDS, connect=1.0),
            trust_env=False,  # a proxy for the web is none for etcd
        )

    async def close(self) -> None:
        await self._http.aclose()

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def range(self, prefix: str) -> list[KeyValue]:
        """All keys with this prefix, as they are now: etcd asks its majority."""
        answer = await self._call("kv/range", {"key": _encoded(prefix), "range_end": _encoded(_end_of(prefix))})
        return [_key_value(each) for each in answer.get("kvs", ())]

    async def transact(self, compare: Sequence[Mapping[str, Any]], operation: Mapping[str, Any]) -> tuple[bool, int]:
        """Whether all held and it was done, and at which revision."""
        body = {"compare": list(compare), "success": [operation], "failure": []}
        answer = await self._call("kv/txn", body, repeatable=False)
        return bool(answer.get("succeeded")), int(answer["header"]["revision"])

    async def delete(self, key: str) -> None:
        await self._call("kv/deleterange", {"key": _encoded(key)})

    # ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def grant_lease(self, seconds: int) -> int:
        return int((await self._call("lease/grant", {"TTL": str(seconds)}))["ID"])

    async def keep_lease(self, lease: int) -> bool:
        """Whether it still was there, and goes on."""
        answer = await self._call("lease/keepalive", {"ID": str(lease)})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    async def revoke_lease(self, lease: int) -> None:
        await self._call("lease/revoke", {"ID": str(lease)})

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _call(self, path: str, body: Mapping[str, Any], *, repeatable: bool = True) -> dict[str, Any]:
        """Raises EngineUnavailable."""
        failures: list[str] = []
        for _ in range(len(self._endpoints)):
            try:
                return await self._post(path, body)
            except httpx.HTTPError as error:
                failures.append(f"{self._endpoints[0]}: {_reason(error)}")
                self._endpoints.append(self._endpoints.pop(0))
                if not repeatable and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    break
            except _Refused as error:
                failures.append(f"{self._endpoints[0]}: {error}")
                self._endpoints.append(self._endpoints.pop(0))
                if not repeatable:
                    break
        raise EngineUnavailable(not_reached(failures))

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._account is not None and self._token is None:
            user, password = self._account
            answer = await self._once("auth/authenticate", {"name": user, "password": password}, None)
            self._token = str(answer["token"])
        try:
            return await self._once(path, body, self._token)
        except _WrongToken:  # etcd forgets tokens after five minutes, and all when it restarts: nothing was done
            self._token = None
            raise

    async def _once(self, path: str, body: Mapping[str, Any], token: str | None) -> dict[str, Any]:
        headers = {} if token is None else {"Authorization": token}
        answer = await self._http.post(f"{self._endpoints[0]}/v3/{path}", json=body, headers=headers)
        try:
            content = answer.json()
        except ValueError:
            raise _Refused(f"it is not etcd that answers there (status {answer.status_code}, no JSON)") from None
        if answer.status_code != httpx.codes.OK:
            reason = str(content.get("message") or content.get("error") or content)
            kind = _WrongToken if any(each in reason for each in _WRONG_TOKEN) else _Refused
            raise kind(f"answer {answer.status_code}: {reason}")
        if not isinstance(content, dict):
            raise _Refused("the answer is no object")
        return content


def _reason(error: httpx.HTTPError) -> str:
    return innermost_reason(TimeoutError() if isinstance(error, httpx.TimeoutException) else error)


class _Refused(Exception):
    """An endpoint answered with an error."""


class _WrongToken(_Refused):
    """Log in again."""


# ── parts of transactions ────────────────────────────────────────────────────────────────────────────────────────────


def was_created_at(key: str, revision: int) -> dict[str, Any]:
    """The key is there, and still the one that was created then."""
    return {"key": _encoded(key), "target": "CREATE", "result": "EQUAL", "create_revision": str(revision)}


def was_changed_at(key: str, revision: int) -> dict[str, Any]:
    """The key has this version; 0: there is none."""
    return {"key": _encoded(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}


def put(key: str, value: bytes, lease: int = 0) -> dict[str, Any]:
    """Write it."""
    content = base64.b64encode(value).decode()
    return {"request_put": {"key": _encoded(key), "value": content, "lease": str(lease)}}


def remove(key: str) -> dict[str, Any]:
    """Remove it."""
    return {"request_delete_range": {"key": _encoded(key)}}


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _end_of(prefix: str) -> str:
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _key_value(found: Mapping[str, Any]) -> KeyValue:
    return KeyValue(
        base64.b64decode(found["key"]).decode(),
        base64.b64decode(found.get("value", "")),
        int(found["create_revision"]),
        int(found["mod_revision"]),
    )
