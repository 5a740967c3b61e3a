"""The vectorised decoder: records in a buffer → Arrow columns.

It serves commit-log files (mapped into memory) and joined pull answers alike. Its results are those of
`format.record.decode_record` and of the client, several dozen times faster; the order of work is:

    walk      where records begin: the chain of sizes, or a search behind a break of it
    parts     their fixed fields, and where their variable parts lie
    decoder   one Arrow array per column; with slices, properties and (inner) batches

Batches of 4,000 to 10,000 records are best: more of them leave the cache between the steps.
"""

from skyrocket.pipeline.columns.batches import BadBody
from skyrocket.pipeline.columns.decoder import decode, decode_parts, property_blocks, topics
from skyrocket.pipeline.columns.parts import Parts, examine
from skyrocket.pipeline.columns.properties import PropertyBlocks
from skyrocket.pipeline.columns.walk import Damage, Positions, RecordWalk, find_record, record_positions

__all__ = [
    "BadBody",
    "Damage",
    "Parts",
    "Positions",
    "PropertyBlocks",
    "RecordWalk",
    "decode",
    "decode_parts",
    "examine",
    "find_record",
    "property_blocks",
    "record_positions",
    "topics",
]
