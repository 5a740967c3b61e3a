"""From a loaded file to what can be run: the session, and the outputs that Spark has checked."""

import contextlib
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from skyrocket.pipeline.declared.frames import Output, outputs
from skyrocket.pipeline.declared.reading import Located
from skyrocket.pipeline.session import register, session


@contextlib.contextmanager
def prepared(located: Located, namesrv: str, master: str, conf: Mapping[str, str]) -> Iterator[list[Output]]:
    """Raises PipelineFileError. The process's Spark if it has one, else one of its own that ends with the block."""
    running = SparkSession.getActiveSession()
    spark = running or session(f"skyrocket {located.pipeline.name}", master, {**located.pipeline.conf, **conf})
    if running is None:
        spark.sparkContext.setLogLevel("ERROR")
    try:
        fresh = register(spark.newSession())  # tables of one pipeline are none of another's
        for name, value in located.pipeline.conf.items():
            if fresh.conf.isModifiable(name):
                fresh.conf.set(name, value)
        yield outputs(fresh, located.pipeline, located.locations, namesrv)
    finally:
        if running is None:
            spark.stop()
