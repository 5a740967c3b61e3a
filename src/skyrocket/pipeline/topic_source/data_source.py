"""format("rocketmq"): the one class that Spark knows; what it does lies beside it and in `topic_sink`."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class TopicDataSource(DataSource):
    """Topics as tables."""

    @classmethod
    def name(cls) -> str:
        """What stands in format(…)."""
        return "rocketmq"

    def schema(self) -> StructType:
        """The row schema; a user's own schema with fewer columns is read faster."""
        from skyrocket.pipeline.options import Options
        from skyrocket.pipeline.schema import spark_schema
        from skyrocket.pipeline.topic_source.settings import FORMAT, OPTIONS, properties_form

        return spark_schema(None, properties_form(Options(self.options, OPTIONS, FORMAT)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read."""
        from skyrocket.pipeline.topic_source.batch import TopicReader

        return TopicReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For spark.readStream."""
        from skyrocket.pipeline.topic_source.stream_reader import TopicStreamReader

        return TopicStreamReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        """For df.write; raises OptionError or InputError before anything is sent."""
        from skyrocket.pipeline.topic_sink.input_columns import InputError, input_columns
        from skyrocket.pipeline.topic_sink.settings import sink_settings
        from skyrocket.pipeline.topic_sink.writers import TopicWriter

        if overwrite:
            raise InputError('a topic cannot be overwritten, messages are only added: write with .mode("append")')
        settings = sink_settings(self.options, is_stream=False)
        return TopicWriter(settings, input_columns(schema, settings.topic))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802
        """For df.writeStream; `overwrite` is Spark's word for the output mode complete."""
        from skyrocket.pipeline.topic_sink.input_columns import InputError, input_columns
        from skyrocket.pipeline.topic_sink.settings import sink_settings
        from skyrocket.pipeline.topic_sink.writers import TopicStreamWriter

        if overwrite:
            raise InputError(
                'a topic cannot be overwritten by each batch (outputMode "complete"): use outputMode "append" or '
                '"update"'
            )
        settings = sink_settings(self.options, is_stream=True)
        return TopicStreamWriter(settings, input_columns(schema, settings.topic))
