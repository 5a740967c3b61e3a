"""Admin: topics, groups, offsets, messages, brokers, name servers, accounts, quotas; a file for each.

    async with Admin("127.0.0.1:9876") as admin:
        await admin.create_topic("Orders", queues=8)

Each call asks name servers and brokers anew; nothing is remembered. Changes go to every master of a cluster.
"""

from skyrocket.client.admin.controller_admin import ControllerAdmin
from skyrocket.client.admin.dead_letters import DeadLetterAdmin
from skyrocket.client.admin.declarations import DeclarationAdmin
from skyrocket.client.admin.given_up_transactions import GivenUpAdmin
from skyrocket.client.admin.message_copies import CopyAdmin
from skyrocket.client.admin.message_track import TrackAdmin
from skyrocket.client.admin.name_server_admin import NameServerAdmin
from skyrocket.client.admin.quota_admin import QuotaAdmin
from skyrocket.client.admin.waiting_messages import WaitingAdmin


class Admin(
    TrackAdmin,
    CopyAdmin,
    DeadLetterAdmin,
    GivenUpAdmin,
    WaitingAdmin,
    NameServerAdmin,
    DeclarationAdmin,
    QuotaAdmin,
    ControllerAdmin,
):
    """Operations on a cluster."""
