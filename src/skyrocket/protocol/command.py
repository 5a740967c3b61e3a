"""RemotingCommand: what one frame says, asked or answered."""

from typing import TypeAlias

from skyrocket.protocol.codes import OUR_VERSION, LanguageCode, SerializeType

Body: TypeAlias = bytes | memoryview

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_JSON = SerializeType.JSON


class RemotingCommand:
    """A request or an answer; not frozen, because one is made for every frame.

    `ext_fields` is None when the header has none at all, which peers can tell from `{}`. No body is `b""`.
    """

    __slots__ = ("body", "code", "ext_fields", "flag", "language", "opaque", "remark", "serialize_type", "version")

    def __init__(
        self,
        code: int,
        opaque: int = 0,
        flag: int = 0,
        ext_fields: dict[str, str] | None = None,
        body: Body = b"",
        remark: str | None = None,
        language: LanguageCode | None = LanguageCode.JAVA,
        version: int = OUR_VERSION,
    ) -> None:
        self.code = code
        self.opaque = opaque
        self.flag = flag
        self.ext_fields = ext_fields
        self.body = body
        self.remark = remark
        self.language = language
        self.version = version
        self.serialize_type: SerializeType = _JSON  # `as_binary` makes one with the other form of header

    def as_binary(self) -> "RemotingCommand":
        """This command, to be sent with RocketMQ's binary header instead of JSON."""
        self.serialize_type = SerializeType.ROCKETMQ
        return self

    @property
    def is_response(self) -> bool:
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & ONEWAY_FLAG != 0

    def answer(
        self, code: int, remark: str | None = None, ext_fields: dict[str, str] | None = None, body: Body = b""
    ) -> "RemotingCommand":
        """The answer to this request. As RocketMQ's servers answer: in JSON, whatever the form of the request."""
        return RemotingCommand(code, self.opaque, RESPONSE_FLAG, ext_fields, body, remark)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemotingCommand):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "answer" if self.is_response else "request"
        return f"<{kind} {self.code} opaque={self.opaque} {self.ext_fields} {len(self.body)} bytes>"
