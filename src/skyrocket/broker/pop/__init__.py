"""Popping: messages are hidden from others for a while instead of a queue being given to one consumer.

    processor ─▶ taking ─▶ the store           which queues, from where on; retry topics mixed in
        │           └────▶ revive_log           a check point for all that is handed out, before offsets move on
        ├──▶ waiting                            nothing there: wait for messages
        └──▶ orders                             in order: one batch of a queue at a time
    acks ─▶ revive_log                          acknowledged, or hidden longer
    revive ◀─ revive log ◀─ the timer           not acknowledged in time ─▶ %RETRY%group_topic

`popping` builds these parts.
"""
