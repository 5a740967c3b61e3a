"""What a golden store holds, as files and topics."""

from pathlib import Path

from skyrocket.format.config_files import TOPICS
from tests.golden_store import GoldenStore


def batch_topics(golden: GoldenStore) -> set[str]:
    content = TOPICS.decode((golden.path / "config" / "topics.json").read_bytes())
    return {name for name, topic in content.topics.items() if topic.attributes.get("queue.type") == "BatchCQ"}


def files_below(directory: Path) -> dict[str, bytes]:
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}
