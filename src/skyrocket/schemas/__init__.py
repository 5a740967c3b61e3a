"""Bodies with a schema: Avro and Protobuf from files and registries, without Spark and without Arrow.

avro, protobuf     a schema and a body ▸ values
proto_text         a .proto file ▸ descriptors, without protoc
descriptors        a file's or a registry's schema of Protobuf with what it imports
numbered           what a registry's clients put before a body
registry           schemas by number, as Confluent's registry and Apicurio's `ccompat` give them
avro_bounds, trees what anybody's bytes may grow to when people look at them
readers            a schema at work on one body
catalog            which topic has which schema, from a file
"""
