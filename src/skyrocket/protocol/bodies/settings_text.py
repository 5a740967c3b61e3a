"""The body that changes settings of a server: Java properties."""

from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemFailure


def decode_settings(body: Body) -> str:
    """The text of a body; raises SystemFailure where it is none."""
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise SystemFailure(
            f"string2Properties error: the settings are not UTF-8 text, see byte {error.start}; nothing was changed"
        ) from error
