"""What a replica keeps beside its log, as RocketMQ writes it: its epochs, and who it is in its set."""

import os

from skyrocket.broker.state.epochs import Epochs
from skyrocket.errors import ConfigError, CorruptFile, DataError
from skyrocket.format import store_names as names
from skyrocket.format.epochs import (
    Epoch,
    ReplicaIdentity,
    decode_epochs,
    decode_identity,
    encode_epochs,
    encode_identity,
)
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk


def load_epochs(disk: Disk, root: str) -> Epochs:
    """`epochFileCheckpoint` of a store directory; raises CorruptFile."""
    file: ConfigFile[tuple[Epoch, ...]] = ConfigFile(
        disk, os.path.join(root, names.EPOCHS), decode_epochs, encode_epochs
    )
    epochs = Epochs(file)
    epochs.load()
    return epochs


class IdentityFiles:
    """`brokerIdentity`, and `brokerIdentity-temp` until a controller has confirmed the id."""

    def __init__(self, disk: Disk, root: str, cluster_name: str, broker_name: str) -> None:
        self._disk = disk
        self._path = os.path.join(root, names.IDENTITY)
        self._names = (cluster_name, broker_name)

    def load(self) -> ReplicaIdentity | None:
        """Who this broker is, or asks to be; raises CorruptFile, and ConfigError when it is of another set."""
        return self._read(self._path) or self._read(self._path + "-temp")

    def _read(self, path: str) -> ReplicaIdentity | None:
        try:
            found = decode_identity(self._disk.read_file(path))
        except FileNotFoundError:
            return None
        except DataError as error:
            raise CorruptFile(
                path, str(error), "Restore it; without it this broker joins its set as a new one"
            ) from None
        if found[:2] != self._names:
            raise ConfigError(
                f"{path} says that this store is of broker {found.broker_name} of cluster {found.cluster_name}, but "
                f"settings say {self._names[1]} of {self._names[0]}: take another storePathRootDir, or these names"
            )
        return found

    def ask(self, broker_id: int, check_code: str) -> ReplicaIdentity:
        """Remember what a controller is about to be asked for."""
        identity = ReplicaIdentity(*self._names, broker_id, check_code)
        self._disk.replace_file(self._path + "-temp", encode_identity(identity))
        return identity

    def confirm(self, identity: ReplicaIdentity) -> ReplicaIdentity:
        """A controller has given the id."""
        confirmed = identity._replace(check_code="")
        self._disk.replace_file(self._path, encode_identity(confirmed))
        self._disk.unlink(self._path + "-temp")
        return confirmed

    def give_up(self) -> None:
        """Another broker has the id that was asked for."""
        self._disk.unlink(self._path + "-temp")
