"""Admin: topics, groups, offsets, queries, routes, connections.

    async with Admin("127.0.0.1:9876") as admin:
        await admin.create_topic("Orders", queues=8)

Each call asks name servers and brokers anew; nothing is remembered. Changes go to every master of a cluster.
"""

from skyrocket.client.admin.dead_letters import DeadLetterAdmin
from skyrocket.client.admin.group_admin import GroupAdmin
from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.waiting_messages import WaitingAdmin


class Admin(GroupAdmin, MessageAdmin, DeadLetterAdmin, WaitingAdmin):
    """Operations on a cluster."""
