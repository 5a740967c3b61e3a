"""Who may read and write a topic."""

PERM_PRIORITY = 8  # RocketMQ: reserved, never valid in a topic
PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1  # a template: topics created on first use copy it

_LETTERS = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))


def is_valid_permission(permission: int) -> bool:
    """Whether a topic may have this permission."""
    return 0 <= permission < PERM_PRIORITY


def permission_text(permission: int) -> str:
    """As operators see it: 6 → `RW-`."""
    return "".join(letter if permission & bit else "-" for bit, letter in _LETTERS)
