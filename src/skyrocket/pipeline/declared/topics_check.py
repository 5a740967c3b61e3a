"""Whether the topics that a pipeline names exist: the one check that asks a name server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skyrocket.client.core.names import wrap
from skyrocket.pipeline.declared.locations import Locations, Part
from skyrocket.pipeline.declared.plan import ROCKETMQ, Malformed, Pipeline, Sink, Source
from skyrocket.pipeline.declared.problems import PipelineFileError, Problem
from skyrocket.pipeline.options import Options, nearest
from skyrocket.pipeline.topic_source.cluster import CLUSTER_OPTIONS, NAMESPACE, cluster_of

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings
    from skyrocket.client.blocking import Admin


def check_topics(pipeline: Pipeline, locations: Locations, admin: "Admin", *, create: bool = True) -> None:
    """Raises PipelineFileError for topics that do not exist; with `createTopics` those of sinks are made."""
    existing = admin.topics()  # with their namespaces
    missing = [(part, topic) for part, topic in read_topics(pipeline) if topic not in existing]
    to_write = list(dict.fromkeys(topic for _, topic in written_topics(pipeline) if topic not in existing))
    if pipeline.create_topics:
        for topic in to_write if create and not missing else ():
            admin.create_topic(topic)
    else:
        missing += [(part, topic) for part, topic in written_topics(pipeline) if topic in to_write]
    if missing:
        raise PipelineFileError([Problem(locations.of(part), *_said(topic, existing, part)) for part, topic in missing])


def cluster_settings(pipeline: Pipeline, namesrv: str) -> "ClientSettings":
    """How the pipeline's own sources and sinks reach the cluster: account, encryption and all.

    Each may have a namespace of its own, so there is none here, and topics are named in full.
    """
    parts: list[Source | Sink] = [*pipeline.sources.values(), *pipeline.sinks]
    given = [
        {name: part.options[name] for name in CLUSTER_OPTIONS if name in part.options and name != NAMESPACE}
        for part in parts
        if part.format == ROCKETMQ
    ]
    chosen = next(filter(None, given), {})
    return cluster_of(Options({"namesrvAddr": namesrv, **chosen}, CLUSTER_OPTIONS, ROCKETMQ)).client_settings("check")


def _said(topic: str, existing: list[str], part: Part) -> tuple[str, str]:
    meant = nearest(topic, existing)
    make = "create it, or write `createTopics: true`" if part[0] != "sources" else "create it"
    return f"topic {topic} does not exist", f"did you mean {meant}? Else {make}" if meant else make


def read_topics(pipeline: Pipeline) -> Iterator[tuple[Part, str]]:
    """Topics of sources with their namespaces, and where each stands."""
    for name, source in pipeline.sources.items():
        if source.format == ROCKETMQ:
            for topic in source.options.get("subscribe", "").split(","):
                if topic.strip():
                    yield ("sources", name, "subscribe"), wrap(source.options.get(NAMESPACE, ""), topic.strip())


def written_topics(pipeline: Pipeline) -> Iterator[tuple[Part, str]]:
    """Topics of sinks and of malformed bodies with their namespaces, and where each stands."""
    for sink in pipeline.sinks:
        if sink.format == ROCKETMQ:
            yield ("sinks", sink.name, "topic"), wrap(sink.options.get(NAMESPACE, ""), sink.options["topic"])
    if pipeline.on_error.malformed is Malformed.DLQ and pipeline.on_error.topic:
        of_sources = [pipeline.sources[name].options.get(NAMESPACE, "") for name in pipeline.malformed_sources()]
        for namespace in dict.fromkeys(of_sources or [""]):
            yield ("onError", "topic"), wrap(namespace, pipeline.on_error.topic)
