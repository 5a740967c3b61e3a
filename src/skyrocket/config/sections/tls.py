"""What servers can be told about TLS."""

from dataclasses import dataclass

from skyrocket.config.sections.setting import setting


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS of a server; in RocketMQ these are system properties or lines of tls.properties."""

    mode: str = setting("permissive", key="tls.server.mode", help="disabled, permissive or enforcing")
    test_mode: bool = setting(
        True, key="tls.test.mode.enable", help="use a fresh self-signed certificate, no files; needs skyrocket[tls]"
    )
    cert_path: str = setting("", key="tls.server.certPath", help="certificate chain (PEM)")
    key_path: str = setting("", key="tls.server.keyPath", help="private key (PEM)")
    key_password: str = setting("", key="tls.server.keyPassword", secret=True, help="password of the private key")
    trust_cert_path: str = setting("", key="tls.server.trustCertPath", help="certificates that clients are checked by")
    client_auth: str = setting("none", key="tls.server.need.client.auth", help="none, optional or require")
    verify_clients: bool = setting(False, key="tls.server.authClient", help="check the certificates of clients")
    client_enabled: bool = setting(
        False, key="tls.enable", help="speak TLS to other servers; also done when the mode is enforcing"
    )
    client_cert_path: str = setting("", key="tls.client.certPath", help="certificate shown to them (PEM)")
    client_key_path: str = setting("", key="tls.client.keyPath", help="its private key (PEM)")
    client_key_password: str = setting("", key="tls.client.keyPassword", secret=True, help="password of that key")
    client_trust_cert_path: str = setting(
        "", key="tls.client.trustCertPath", help="certificates that they are checked by"
    )
    verify_servers: bool = setting(False, key="tls.client.authServer", help="check the certificates of servers")
    check_host_names: bool = setting(
        True,
        ours=True,
        key="tls.client.checkHostName",
        help="a certificate that is checked must name the address that was called; RocketMQ takes one of any name",
    )
    config_file: str = setting(
        "/etc/rocketmq/tls.properties", key="tls.config.file", help="file whose lines replace those above but the mode"
    )
