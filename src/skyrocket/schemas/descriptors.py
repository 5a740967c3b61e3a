"""Protobuf descriptors of a file, or of a registry's schema, with all that it imports."""

import base64
import binascii
import importlib
from pathlib import Path
from typing import Any

from skyrocket.errors import ConfigError
from skyrocket.schemas.proto_text import file_descriptor
from skyrocket.schemas.protobuf import HOW_TO_GET_IT
from skyrocket.schemas.registry import serialized_number, serialized_schema


def latest_descriptors(registry: str, subject: str) -> tuple[bytes, str]:
    """A FileDescriptorSet, the subject's file last, and its first message; raises ConfigError, RegistryError."""
    _require_library()
    found: dict[str, Any] = {}
    file = _add(found, registry, subject, "latest", None)
    if not file.message_type:
        raise ConfigError(f"the schema of subject {subject} has no message")
    return _set_of(found), f"{file.package}.{file.message_type[0].name}".lstrip(".")


def numbered_descriptors(registry: str, number: int) -> bytes:
    """The same for a schema by its number; raises ConfigError, RegistryError."""
    _require_library()
    found: dict[str, Any] = {}
    _add_answer(found, registry, serialized_number(registry, number), f"number {number}", None)
    return _set_of(found)


def descriptors_of_file(path: Path) -> bytes:
    """A FileDescriptorSet: what protoc has written, or a .proto file with those beside it; raises ConfigError."""
    _require_library()
    if path.suffix != ".proto":
        return read_file(path)
    found: dict[str, Any] = {}
    _add_file(found, path.parent, path.name)
    return _set_of(found)


def read_file(path: Path) -> bytes:
    """Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the schema file {path} cannot be read: {error.strerror}; check its path") from error


def _require_library() -> None:
    try:
        import google.protobuf  # noqa: F401
    except ImportError as error:
        raise ConfigError(HOW_TO_GET_IT) from error


def _set_of(found: dict[str, Any]) -> bytes:
    from google.protobuf import descriptor_pb2

    return descriptor_pb2.FileDescriptorSet(file=found.values()).SerializeToString()


def _add_file(found: dict[str, Any], folder: Path, name: str) -> None:
    """What a file imports stands before it."""
    file = file_descriptor(read_file(folder / name).decode("utf-8", "replace"), name)
    found[name] = None  # it is being read: who imports it in a circle goes on
    for imported in file.dependency:
        if imported in found:
            continue
        if (folder / imported).exists():
            _add_file(found, folder, imported)
        else:
            found[imported] = _of_the_library(imported, f"{name} imports {imported}, which is not in {folder}")
    del found[name]
    found[name] = file


def _add(found: dict[str, Any], registry: str, subject: str, version: str, name: str | None) -> Any:
    answer = serialized_schema(registry, subject, version)
    return _add_answer(found, registry, answer, f"subject {subject}", name)


def _add_answer(found: dict[str, Any], registry: str, answer: dict[str, Any], label: str, name: str | None) -> Any:
    """What a file imports stands before it."""
    if answer.get("schemaType") != "PROTOBUF":
        raise ConfigError(f"{label} has a schema of {answer.get('schemaType', 'AVRO')}, not of PROTOBUF")
    file = _file_of(str(answer["schema"]), label)
    file.name = name or file.name or f"{label.split()[-1]}.proto"
    found[file.name] = None  # it is being read: who refers to it in a circle goes on
    for each in answer.get("references", ()):
        if each["name"] not in found:
            _add(found, registry, each["subject"], str(each["version"]), each["name"])
    for imported in file.dependency:
        if imported not in found:
            why = f"the schema of {label} imports {imported}, which the registry does not name"
            found[imported] = _of_the_library(imported, why)
    del found[file.name]
    found[file.name] = file
    return file


def _file_of(schema: str, label: str) -> Any:
    """Descriptors where the registry can give them, else the text of the .proto file."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema, validate=True))
    except (binascii.Error, DecodeError):
        return file_descriptor(schema, f"{label.split()[-1]}.proto")


def _of_the_library(path: str, missing: str) -> Any:
    """google/protobuf/timestamp.proto and its neighbours, which no registry lists; raises ConfigError."""
    from google.protobuf import descriptor_pb2

    if not path.startswith("google/"):
        raise ConfigError(missing)
    try:
        module = importlib.import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError as error:
        raise ConfigError(missing) from error
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file
