"""Assignment of queues, and the modes behind it: the broker shares queues out, to be pulled or to be popped."""

from collections.abc import Callable, Sequence
from typing import Final

from skyrocket.broker.pop.request_modes import RequestModeTable
from skyrocket.broker.pop.routes import QueueRoutes
from skyrocket.broker.state.consumer_group import BROADCASTING
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.tables import Tables
from skyrocket.format.config_files import POP, PULL, RequestMode
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies import assignment as bodies
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import GroupNotExist, NoPermission
from skyrocket.protocol.requests.pop import GetAllMessageRequestMode, QueryAssignment, SetMessageRequestMode
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve

ANY_QUEUE: Final = -1
Strategy = Callable[[int, int, int], list[int]]  # place of the client, clients, queues → numbers of its queues


def averagely(place: int, clients: int, queues: int) -> list[int]:
    """Neighbouring queues; the first clients have one more where it does not come out even."""
    each, left = divmod(queues, clients)
    start = place * each + min(place, left)
    return list(range(start, start + each + (place < left)))


def by_circle(place: int, clients: int, queues: int) -> list[int]:
    """Every n-th queue."""
    return list(range(place, queues, clients))


STRATEGIES: Final[dict[str, Strategy]] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}


def pulled_queues(
    strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str], client_id: str
) -> list[MessageQueue]:
    """The queues of one client; none for a client that is not a member. Queues and clients are sorted."""
    if client_id not in clients or not queues:
        return []
    return [queues[number] for number in strategy(clients.index(client_id), len(clients), len(queues))]


def popped_queues(
    strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str], client_id: str, shared_with: int
) -> list[MessageQueue]:
    """A client's queues for popping: several may have a queue, so that nobody idles beside a slow one."""
    if shared_with <= 0 or shared_with >= len(clients) - 1:
        return [MessageQueue(queue.topic, queue.broker_name, ANY_QUEUE) for queue in queues]
    if client_id not in clients or not queues:
        return []
    place = clients.index(client_id)
    if len(clients) > len(queues):
        return [queues[place % len(queues)]]
    neighbours = [clients[(place + step) % len(clients)] for step in range(shared_with + 1)]
    return [queue for each in neighbours for queue in pulled_queues(strategy, queues, clients, each)]


class AssignmentProcessor:
    """Shares the queues of all brokers out among the members of a group."""

    def __init__(
        self,
        modes: RequestModeTable,
        tables: Tables,
        routes: QueueRoutes,
        settings: LiveSettings,
    ) -> None:
        self._modes = modes
        self._topics = tables.topics
        self._groups = tables.groups
        self._consumers = tables.consumers
        self._routes = routes
        self._settings = settings

    def handlers(self) -> Handlers:
        return (
            serve(QueryAssignment, self.query),
            serve(SetMessageRequestMode, self.set_mode),
            serve(GetAllMessageRequestMode, self.all_modes),
        )

    # ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_mode(self, _: Peer, __: SetMessageRequestMode, body: bodies.RequestMode) -> None:
        """Let a group pull or pop a topic; raises NoPermission, TopicNotExist or GroupNotExist."""
        topic, group = body.topic or "", body.group or ""
        if topic.startswith(RETRY_PREFIX):
            raise NoPermission("retry topic is not allowed to set mode")
        self._topics.existing(topic, f"topic[{topic}] not exist")
        if self._groups.find_or_create(group) is None:
            raise GroupNotExist("subscription group does not exist")
        self._modes.set(RequestMode(topic, group, body.mode or PULL, body.pop_share_queues))

    def all_modes(self, _: Peer, __: GetAllMessageRequestMode, ___: Body) -> bodies.RequestModeTable:
        """Everything that was decided, for a slave."""
        table = {
            topic: {
                group: bodies.RequestMode(
                    topic=mode.topic, group=mode.group, mode=mode.mode, pop_share_queues=mode.pop_share_queues
                )
                for group, mode in groups.items()
            }
            for topic, groups in self._modes.content().modes.items()
        }
        return bodies.RequestModeTable(modes=table)

    def _mode(self, topic: str, group: str) -> RequestMode:
        found = self._modes.find(topic, group)
        if found is not None:
            return found
        settings = self._settings.broker
        usual = PULL if topic.startswith(RETRY_PREFIX) else settings.request_mode
        return RequestMode(topic, group, usual, settings.pop_share_queues if usual == POP else 0)

    # ── assignment ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def query(self, _: Peer, __: QueryAssignment, asked: bodies.AssignmentQuery) -> bodies.Assignment:
        """The queues of one consumer; without a valid answer it keeps those that it has."""
        topic, group = asked.topic or "", asked.group or ""
        mode = self._mode(topic, group)
        queues = self._shared_out(asked, mode, await self._routes.of(topic))
        assigned = None
        if queues is not None:
            assigned = tuple(bodies.QueueAssignment(queue=queue, mode=mode.mode) for queue in dict.fromkeys(queues))
        return bodies.Assignment(queues=assigned)

    def _shared_out(
        self, asked: bodies.AssignmentQuery, mode: RequestMode, queues: Sequence[MessageQueue] | None
    ) -> Sequence[MessageQueue] | None:
        if queues is None or asked.message_model == BROADCASTING or not self._settings.broker.shares_queues_out:
            return queues
        members = self._consumers.find_group(asked.group or "")
        strategy = STRATEGIES.get(asked.strategy or "")
        if members is None or strategy is None:
            return None
        clients = sorted({client.client_id for client in members.clients})
        ordered = sorted(queues, key=lambda queue: (queue.topic, queue.broker_name, queue.queue_id))
        client_id = asked.client_id or ""
        if mode.mode == POP:
            return popped_queues(strategy, ordered, clients, client_id, mode.pop_share_queues)
        return pulled_queues(strategy, ordered, clients, client_id)
