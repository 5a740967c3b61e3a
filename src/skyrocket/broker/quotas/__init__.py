"""Quotas: how much an account or a namespace may send, read, connect and keep; off until one is set.

request ─▶ charging      whose it is, and what it costs; raises the refusal, or lets a read wait
        ─▶ spenders      what each has used, forgotten when idle
        ─▶ quota_table   what operators allow, in quotas.json
        ─▶ topic_owners  who created a topic, in topicOwners.json
"""
