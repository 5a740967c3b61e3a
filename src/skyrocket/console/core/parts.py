"""What endpoints share."""

from dataclasses import dataclass, field

from skyrocket.clock import ServiceClock
from skyrocket.console.alerts.watcher import Watcher
from skyrocket.console.cluster.controllers import Controllers
from skyrocket.console.cluster.copies import Copies
from skyrocket.console.cluster.decoding import Decoder
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import Series
from skyrocket.console.live.gate import Gate
from skyrocket.console.login.accounts import Accounts
from skyrocket.console.login.attempts import Attempts
from skyrocket.console.login.audit import Audit
from skyrocket.console.login.sessions import Sessions
from skyrocket.console.login.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Parts:
    """Made once by the console."""

    settings: ConsoleSettings
    token: str
    clock: ServiceClock
    view: ClusterView
    database: Database
    series: Series
    audit: Audit
    accounts: Accounts
    sessions: Sessions
    attempts: Attempts
    watcher: Watcher
    copies: Copies
    controllers: Controllers
    decoder: Decoder
    tokens: Tokens
    streams: Gate = field(default_factory=Gate)
