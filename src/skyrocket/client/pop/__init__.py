"""The simple consumer: messages that are hidden for a while and acknowledged one by one."""
