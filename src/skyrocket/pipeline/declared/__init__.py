"""Declared pipelines, a YAML or Python file each: sources ▸ decode ▸ SQL steps ▸ sinks (docs/guides/pipeline-files.md).

`plan` is what a pipeline is, `reading` and `rules` get it from a file and tell what is wrong with which line; `frames`
makes DataFrames of it, `analysis` lets Spark look for mistakes before anything starts; `runner` keeps it going.
"""

from skyrocket.pipeline.declared.loading import load
from skyrocket.pipeline.declared.plan import (
    Decode,
    Dedupe,
    Malformed,
    OnError,
    Pipeline,
    Restart,
    Sink,
    Source,
    Step,
    Trigger,
    Watermark,
)
from skyrocket.pipeline.declared.problems import PipelineFileError, Place, Problem

__all__ = [
    "Decode",
    "Dedupe",
    "Malformed",
    "OnError",
    "Pipeline",
    "PipelineFileError",
    "Place",
    "Problem",
    "Restart",
    "Sink",
    "Source",
    "Step",
    "Trigger",
    "Watermark",
    "load",
]
