"""Protobuf descriptors of a registry's subject: its newest schema with all that it imports."""

import base64
import binascii
import importlib
from typing import Any

from skyrocket.errors import ConfigError
from skyrocket.pipeline.bodies.registry import serialized_schema


def latest_descriptors(registry: str, subject: str) -> tuple[bytes, str]:
    """A FileDescriptorSet, the subject's file last, and its first message; raises ConfigError, RegistryError."""
    try:
        from google.protobuf import descriptor_pb2
    except ImportError as error:
        raise ConfigError("Protobuf bodies need protobuf: pip install protobuf") from error
    found: dict[str, Any] = {}
    file = _add(found, registry, subject, "latest", None)
    if not file.message_type:
        raise ConfigError(f"the schema of subject {subject} has no message")
    files = descriptor_pb2.FileDescriptorSet(file=found.values())
    return files.SerializeToString(), f"{file.package}.{file.message_type[0].name}".lstrip(".")


def _add(found: dict[str, Any], registry: str, subject: str, version: str, name: str | None) -> Any:
    """What a file imports stands before it."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    answer = serialized_schema(registry, subject, version)
    if answer.get("schemaType") != "PROTOBUF":
        raise ConfigError(f"subject {subject} has a schema of {answer.get('schemaType', 'AVRO')}, not of PROTOBUF")
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(answer["schema"], validate=True))
    except (binascii.Error, DecodeError) as error:
        raise ConfigError(
            f"the registry gives subject {subject} as text, not as descriptors: give schema_file beside registry, made "
            "by `protoc --include_imports --descriptor_set_out=FILE …`"
        ) from error
    file.name = name or file.name or f"{subject}.proto"
    for each in answer.get("references", ()):
        if each["name"] not in found:
            _add(found, registry, each["subject"], str(each["version"]), each["name"])
    for imported in file.dependency:
        if imported not in found:
            found[imported] = _of_the_library(imported, subject)
    found[file.name] = file
    return file


def _of_the_library(path: str, subject: str) -> Any:
    """google/protobuf/timestamp.proto and its neighbours, which no registry lists."""
    from google.protobuf import descriptor_pb2

    try:
        module = importlib.import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError as error:
        raise ConfigError(
            f"the schema of subject {subject} imports {path}, which the registry does not name"
        ) from error
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file
