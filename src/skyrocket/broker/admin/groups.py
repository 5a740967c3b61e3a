"""What operators do to consumer groups: create, change, look at, delete, forbid topics."""

from skyrocket.broker.rules.paging import page_of
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.persistence import SaveTables, saved
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.groups import GroupConfigList, GroupForbidden, GroupTable
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import GroupNotExist
from skyrocket.protocol.requests.admin_groups import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupAnswer,
    GetAllSubscriptionGroupConfig,
    GetSubscriptionGroupConfig,
    UpdateAndCreateSubscriptionGroup,
    UpdateAndCreateSubscriptionGroupList,
    UpdateAndGetGroupForbidden,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve


class GroupAdminProcessor:
    """Changes the table of groups; members that are connected are left alone."""

    def __init__(self, groups: SubscriptionGroupTable, offsets: ConsumerOffsetTable, save: SaveTables) -> None:
        self._groups = groups
        self._offsets = offsets
        self._save = save

    def handlers(self) -> Handlers:
        return (
            serve(UpdateAndCreateSubscriptionGroup, self.update),
            serve(UpdateAndCreateSubscriptionGroupList, self.update_list),
            serve(DeleteSubscriptionGroup, self.delete),
            serve(GetSubscriptionGroupConfig, self.show),
            serve(GetAllSubscriptionGroupConfig, self.show_all),
            serve(UpdateAndGetGroupForbidden, self.forbid),
        )

    async def update(self, _: Peer, __: UpdateAndCreateSubscriptionGroup, body: SubscriptionGroup | None) -> None:
        """Create or change a group; without a body nothing is asked for, and that is done."""
        if body is not None:
            self._groups.update(body)
        await saved(self._save, self._groups)

    async def update_list(self, _: Peer, __: UpdateAndCreateSubscriptionGroupList, body: GroupConfigList) -> None:
        """Create or change all of these groups or none."""
        self._groups.update_all(body.groups)
        await saved(self._save, self._groups)

    async def delete(self, _: Peer, header: DeleteSubscriptionGroup, __: Body) -> None:
        """Delete a group; its offsets stay unless the caller says otherwise."""
        self._groups.delete(header.group_name)
        if header.cleans_offsets:
            self._offsets.remove_group(header.group_name)
            await saved(self._save, self._groups, self._offsets)
        else:
            await saved(self._save, self._groups)

    def show(self, _: Peer, header: GetSubscriptionGroupConfig, __: Body) -> SubscriptionGroup:
        """One group; RocketMQ: to look at it makes it, where groups may be made by their first use."""
        group = self._groups.find_or_create(header.group)
        if group is None:
            raise GroupNotExist("No group in this broker")
        return group

    def show_all(self, _: Peer, header: GetAllSubscriptionGroupConfig, __: Body) -> Answered:
        """All groups, in pages if the caller says so."""
        content = self._groups.content()
        page = page_of(
            content.groups, header.group_seq, header.max_group_num, header.data_version, content.data_version
        )
        answer = GetAllSubscriptionGroupAnswer(total_group_num=len(content.groups))
        return Answered(answer, GroupTable(content.data_version, page, content.forbidden))

    async def forbid(self, _: Peer, header: UpdateAndGetGroupForbidden, __: Body) -> Answered:
        """Whether a group may read a topic, after the change that was asked for."""
        if header.readable is not None:
            self._groups.let_read(header.group, header.topic, header.readable)
        readable = self._groups.may_read(header.group, header.topic)
        await saved(self._save, self._groups)
        return Answered(body=GroupForbidden(header.group, header.topic, readable), remark="")
