"""A .proto file as descriptors: as protoc reads it, and errors that name the line."""

import pytest
from google.protobuf import descriptor_pb2

from skyrocket.errors import ConfigError
from skyrocket.schemas.proto_text import file_descriptor
from skyrocket.schemas.protobuf import message_class


def kinds(text: str, message: str) -> dict[str, tuple[int, str]]:
    files = descriptor_pb2.FileDescriptorSet(file=[file_descriptor(text, "a.proto")])
    fields = message_class(files.SerializeToString(), message).DESCRIPTOR.fields
    return {
        field.name: (field.type, getattr(field.message_type or field.enum_type, "full_name", "")) for field in fields
    }


def test_names_are_looked_up_from_the_inside_out() -> None:
    text = """
    package a.b;
    message Line { }
    message Order {
      message Line { }
      enum Kind { ANY = 0; }
      optional Line inner = 1;
      required .a.b.Line outer = 2;
      repeated b.Line relative = 3;
      optional Kind kind = 0x4;
      optional fixed64 number = 5 [default = 7, (a.note) = "x]"];
    }
    """
    assert kinds(text, "a.b.Order") == {
        "inner": (11, "a.b.Order.Line"),
        "outer": (11, "a.b.Line"),
        "relative": (11, "a.b.Line"),
        "kind": (14, "a.b.Order.Kind"),
        "number": (6, ""),
    }


def test_a_file_of_proto2_with_extensions_and_services_is_read() -> None:
    text = """
    syntax = 'proto2'; option java_package = "x";
    import public "google/protobuf/any.proto";
    message A { extensions 100 to max; optional string reserved_name = 1; oneof x { string y = 2; } ; }
    extend A { optional string more = 100; }
    service S { rpc Go (stream A) returns (A); };
    """
    file = file_descriptor(text, "a.proto")
    assert (file.syntax, list(file.dependency)) == ("proto2", ["google/protobuf/any.proto"])
    assert [field.name for field in file.message_type[0].field] == ["reserved_name", "y"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message", "a.proto:1: the file ends too early"),
        ("message A {\n  string = 1;\n}", "a.proto:2: '=' is expected, not '1'"),
        ("message A { string a = x; }", "a.proto:1: a number is expected, not 'x'"),
        ("\n\n§", "a.proto:3: '§' has no place"),
        ("hello;", "a.proto:1: message, enum, import, package or option is expected, not 'hello'"),
        ("message A { optional group B = 1 { } }", "groups are not read here"),
        ('edition = "2023";', "editions are not read here"),
        ("message A {" * 100, "nest deeper than 32 levels"),
        ("// " + "x" * 1_100_000, "longer than a .proto file may be"),
        ("option x = {", "ends too early"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        file_descriptor(text, "a.proto")
