"""What every server can be told about the connections that it takes."""

from dataclasses import dataclass

from skyrocket.config.sections.setting import check_bounds, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningConfig:
    """Where a server listens, and what its peers may cost; the sections of servers begin with it."""

    bind_address: str = setting("0.0.0.0", key="bindAddress", help="address of the interface to listen on")
    idle_seconds: int = setting(
        120, key="serverChannelMaxIdleTimeSeconds", min=1, help="silent connections are closed after this time"
    )
    max_connections_per_address: int = setting(
        0,
        ours=True,
        key="maxConnectionsPerAddress",
        min=0,
        help="connections that one address may have; 0: half of what file descriptors allow",
    )
    max_unfinished_bytes: int = setting(
        128 << 20,
        ours=True,
        key="maxUnfinishedFrameBytes",
        min=16 << 20,
        help="bytes of incomplete requests of all connections together; who has left most loses the oldest",
    )
    proxy_networks: str = setting(
        "",
        ours=True,
        key="proxyProtocolNetworks",
        help="networks of load balancers whose PROXY headers are believed, as 10.0.0.0/8,192.168.7.4; empty: none",
    )

    def __post_init__(self) -> None:
        check_bounds(self)
