"""Options that say which cluster, and how to reach it; the same for reading and writing.

With a namespace, options and rows have names without it, as our client shows them. Everything in between has the names
that brokers know: offsets, checkpoints and records, so that the same topic of another namespace is another topic.
"""

import re
import ssl
from dataclasses import dataclass, field
from typing import Final

from skyrocket.client import Acl, ClientSettings
from skyrocket.client.core.names import SEPARATOR, unwrap, wrap
from skyrocket.client.core.tls import tls_context
from skyrocket.pipeline.options import Options

NAMESPACE: Final = "namespace"
CLUSTER_OPTIONS: Final = (
    "namesrvAddr",
    "accessKey",
    "secretKey",
    NAMESPACE,
    "tls",
    "tlsTrustCertPath",
    "tlsCertPath",
    "tlsKeyPath",
    "tlsInsecureTrustAnyServer",
)
_NAMESPACE: Final = re.compile(r"[|a-zA-Z0-9_-]+")


@dataclass(frozen=True)
class Cluster:
    """A cluster with an account; travels to tasks, so it holds names of files and no sockets."""

    name_servers: str
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    tls: bool = False
    trust_cert_path: str = ""
    cert_path: str = ""
    key_path: str = ""
    namespace: str = ""
    insecure_trust_any_server: bool = False

    def client_settings(self, instance_name: str) -> ClientSettings:
        """For our client; raises OSError when a certificate cannot be read."""
        return ClientSettings(
            name_servers=self.name_servers,
            instance_name=instance_name,
            namespace=self.namespace,
            credentials=Acl(self.access_key, self.secret_key) if self.access_key else None,
            tls=self._tls_context() if self.tls else None,
        )

    def full(self, name: str) -> str:
        """The name of a topic or group as brokers know it."""
        return wrap(self.namespace, name)

    def shown(self, name: str) -> str:
        """The name of a topic as users know it."""
        return unwrap(self.namespace, name)

    def has(self, full_name: str) -> bool:
        """Whether a topic belongs to the namespace, if there is one."""
        return wrap(self.namespace, full_name) == full_name

    def _tls_context(self) -> ssl.SSLContext:
        return tls_context(
            self.trust_cert_path or None,
            self.cert_path or None,
            self.key_path or None,
            insecure_trust_any_server=self.insecure_trust_any_server,
        )


def cluster_of(options: Options) -> Cluster:
    """The cluster that the options name; raises OptionError."""
    if options.has("accessKey") != options.has("secretKey"):
        missing = "secretKey" if options.has("accessKey") else "accessKey"
        raise options.error(missing, "is missing: accessKey and secretKey belong together")
    name_servers = options.required("namesrvAddr", "127.0.0.1:9876")
    return Cluster(
        name_servers,
        options.text("accessKey", ""),
        options.text("secretKey", ""),
        options.flag("tls", False),
        options.text("tlsTrustCertPath", ""),
        options.text("tlsCertPath", ""),
        options.text("tlsKeyPath", ""),
        ClientSettings(name_servers=name_servers, namespace=_namespace(options)).effective_namespace(),
        options.flag("tlsInsecureTrustAnyServer", False),
    )


def _namespace(options: Options) -> str:
    namespace = options.text(NAMESPACE, "")
    if namespace and _NAMESPACE.fullmatch(namespace) is None:
        advice = f"; the {SEPARATOR} behind it is not part of it" if SEPARATOR in namespace else ""
        raise options.error(NAMESPACE, f'is "{namespace}": only letters, digits and | _ - are allowed{advice}')
    return namespace
