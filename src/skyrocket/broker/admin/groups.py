"""What operators do to consumer groups: create, change, look at, delete, forbid topics."""

from skyrocket.broker.rules.paging import page_of
from skyrocket.broker.rules.when_saved import SaveTables, answer_when_saved
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.protocol.bodies.groups import (
    GROUP_CONFIG_LIST,
    GROUP_FORBIDDEN,
    GROUP_TABLE,
    SUBSCRIPTION_GROUP,
    GroupForbidden,
    GroupTable,
)
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
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
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


class GroupAdminProcessor:
    """Changes the table of groups; members that are connected are left alone."""

    def __init__(self, groups: SubscriptionGroupTable, offsets: ConsumerOffsetTable, save: SaveTables) -> None:
        self._groups = groups
        self._offsets = offsets
        self._save = save

    def handlers(self) -> Handlers:
        return (
            serve_raw(UpdateAndCreateSubscriptionGroup.code, self.update),
            serve_raw(UpdateAndCreateSubscriptionGroupList.code, self.update_list),
            serve_raw(DeleteSubscriptionGroup.code, self.delete),
            serve_raw(GetSubscriptionGroupConfig.code, self.show),
            serve_raw(GetAllSubscriptionGroupConfig.code, self.show_all),
            serve_raw(UpdateAndGetGroupForbidden.code, self.forbid),
        )

    def update(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP; without a body nothing is asked for, and that is done."""
        if request.body:
            self._groups.update(SUBSCRIPTION_GROUP.decode(request.body))
        return answer_when_saved(request, self._save, self._groups)

    def update_list(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: all of them or none."""
        self._groups.update_all(GROUP_CONFIG_LIST.decode(request.body).groups)
        return answer_when_saved(request, self._save, self._groups)

    def delete(self, _: Peer, request: RemotingCommand) -> Outcome:
        """DELETE_SUBSCRIPTIONGROUP; offsets stay unless the caller says otherwise."""
        header = DeleteSubscriptionGroup.from_fields(request.ext_fields)
        self._groups.delete(header.group_name)
        if not header.cleans_offsets:
            return answer_when_saved(request, self._save, self._groups)
        self._offsets.remove_group(header.group_name)
        return answer_when_saved(request, self._save, self._groups, self._offsets)

    def show(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_SUBSCRIPTIONGROUP_CONFIG."""
        # RocketMQ: to look at a group makes it, where groups may be made by their first use.
        group = self._groups.find_or_create(GetSubscriptionGroupConfig.from_fields(request.ext_fields).group)
        if group is None:
            raise GroupNotExist("No group in this broker")
        return request.answer(ResponseCode.SUCCESS, body=SUBSCRIPTION_GROUP.encode(group))

    def show_all(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG, in pages if the caller says so."""
        header = GetAllSubscriptionGroupConfig.from_fields(request.ext_fields)
        content = self._groups.content()
        page = page_of(
            content.groups, header.group_seq, header.max_group_num, header.data_version, content.data_version
        )
        answer = GetAllSubscriptionGroupAnswer(total_group_num=len(content.groups))
        body = GROUP_TABLE.encode(GroupTable(content.data_version, page, content.forbidden))
        return request.answer(ResponseCode.SUCCESS, None, answer.to_fields(), body)

    def forbid(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_AND_GET_GROUP_FORBIDDEN: whether a group may read a topic, after the change that was asked for."""
        header = UpdateAndGetGroupForbidden.from_fields(request.ext_fields)
        if header.readable is not None:
            self._groups.let_read(header.group, header.topic, header.readable)
        readable = self._groups.may_read(header.group, header.topic)
        body = GROUP_FORBIDDEN.encode(GroupForbidden(header.group, header.topic, readable))
        return answer_when_saved(request, self._save, self._groups, remark="", body=body)
