"""Which word of the controllers counts. Pure: words may come late, twice, and from several of them."""

from skyrocket.broker.state.switching import RoleWord


class RoleBook:
    """The newest role of one broker; it forgets with its process, so who starts is fenced until a controller spoke."""

    def __init__(self) -> None:
        self.own_id = 0  # the controller's; 0 before it has given one
        self.role: RoleWord | None = None

    @property
    def is_master(self) -> bool:
        return self.role is not None and self.own_id > 0 and self.role.master_id == self.own_id

    def hear(self, word: RoleWord) -> bool:
        """A controller spoke; whether anything is new."""
        if word.master_id is None or not word.master_address:
            return False
        known = self.role
        if known is None or word.master_epoch > known.master_epoch:
            self.role = word
            return True
        if word.master_epoch == known.master_epoch and word.members_epoch > known.members_epoch:
            self.role = known._replace(members=word.members, members_epoch=word.members_epoch)
            return True
        return False
