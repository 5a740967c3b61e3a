"""The vectorised decoder: records in a buffer → Arrow columns.

It serves commit-log files (mapped into memory) and joined pull answers alike, for pipelines and for consumers. It needs
pyarrow, so nothing imports it before columns are asked for. Its results are those of
`format.record.decode_record` and of the client, several dozen times faster; the order of work is:

    format.column_walk       where records begin: the chain of sizes, or a search behind a break of it
    format.record_columns    their fixed fields, and where their variable parts lie
    decoder                  one Arrow array per column; with slices, properties and (inner) batches

Batches of 4,000 to 10,000 records are best: more of them leave the cache between the steps.
"""

from skyrocket.columns.batches import BadBody
from skyrocket.columns.decoder import decode, decode_parts, property_blocks, topic_numbers, topics
from skyrocket.columns.properties import PropertyBlocks

__all__ = ["BadBody", "PropertyBlocks", "decode", "decode_parts", "property_blocks", "topic_numbers", "topics"]
