"""The controller: decides who is master of each replica set, and keeps its decisions in an engine that others trust."""
