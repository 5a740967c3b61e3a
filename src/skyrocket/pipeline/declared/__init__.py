"""Declared pipelines, a YAML or Python file each: sources ▸ decode ▸ SQL steps ▸ sinks (docs/guides/pipeline-files.md).

`plan` is what a pipeline is; `reading` and `rules` get it from a file and say what is wrong in which line; `frames`
makes DataFrames of it, so that Spark finds mistakes before anything starts; `runner` keeps it going.
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
from skyrocket.pipeline.declared.problems import Location, PipelineFileError, Problem

__all__ = [
    "Decode",
    "Dedupe",
    "Location",
    "Malformed",
    "OnError",
    "Pipeline",
    "PipelineFileError",
    "Problem",
    "Restart",
    "Sink",
    "Source",
    "Step",
    "Trigger",
    "Watermark",
    "load",
]
