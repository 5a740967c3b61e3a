"""What differs by nature is made equal: times, rates, ports, ids, the order of Java's maps, passwords, and who asks."""

import json
import re
from collections import Counter

from tests.interop.compared.verb import Compared

_EQUAL = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?", "<time>"),
    (r"\b(20\d{12,15}|1970\d{10,13})\b", "<digits>"),
    (r"\b1[78]\d{11}\b", "<ms>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"\b\d+\.\d+\b", "<rate>"),
    (r"\b[0-9A-F]{32,56}\b", "<id>"),
    (r"true \d+$", "true <ms>"),
    (r"(Orders Readers \d+ <rate> <rate>) \d+ \d+$", r"\1 <day> <day>"),
    (r"broker-a \d SEND_OK", "broker-a <queue> SEND_OK"),
    (r"queueId=\d+\], queueOffset", "queueId=<queue>], queueOffset"),
    (r"\b(New|Fifo|Bad|Group|Space|Listed|topics|groups|User|Super|Odd|ghost)[JS]\b", r"\1"),
    (r"(spentTimeMills|rt|storeSize|queueOffset|bodyCRC|commitLogOffset)=\d+", r"\1=<n>"),
    (r"\brt=\d+ms", "rt=<n>ms"),
    (r"recallHandle=\w+", "recallHandle=<h>"),
    (r"OK, \d+", "OK, <n>"),
    (r"\bsecret-\d\b", "******"),  # RocketMQ's tool prints passwords
    (r"\"queueId\":\d", '"queueId":<queue>'),  # RocketMQ shares out queues in the order of a hash set
    (r" #IndexKey$| <ms>@\S+@\d+$", ""),  # a column of 5.4.0's tool, with RocksDB's key
    (r"#(MasterEpoch|SyncStateSetEpoch) \d+", r"#\1 <n>"),
]
# What the tool of 4.9.7 does not have: messages that were pulled and not consumed yet.
_NOT_IN_TOOL_4 = [
    (r" #Inflight", ""),
    (r"^Consume Inflight Total: .*", ""),
    (r"^Consume Diff Total", "Diff Total"),
    (r"(broker-a \d+ \d+ \d+(?: <rate>\.<rate>)? \d+) \d+ (<time>|N/A)$", r"\1 \2"),
]
_IN_JSON = ("topicRoute", "getColdDataFlowCtrInfo", "rocksDBConfigToJson", "exportMetadataInRocksDB")
# Rows that tell of the moment of the call, or of who calls.
_OF_THE_MOMENT = re.compile(
    r"CLIENT_INNER_PRODUCER|RMQ_SYS_TRANS|"
    r"mqadmin-\d+|producer group \(\d+\)|putMessageEntireTimeMax|Tps|TPS|\bHour\b|runtime|"
    r"[dD]iskRatio|DirCapacity|Latency|^at |^\.\.\. |Exception|^See https|^For more info|HeadWait|LOAD|"
    r"putMessageDistributeTime|dispatchBehind|^skyrocket mqadmin|InTotal|TotalTodayNow|DefaultCluster broker-a [<\d]|"
    r"QueueSize|getMessageEntireTimeMax|TOOLS_CONSUMER|remain|^\d+ \S+@|last(Pull|Consume)Timestamp|^Avg RT|"
    r"putMessage|scheduleMessageOffset|%RETRY%(TOOLS|GroupJ|GroupS|Group)|commitLogMaxOffset|timer|"
    r"bootTimestamp|earliestMessage|consumeTimestamp|MasterCommitLogMaxOffset|msgGetTotal|msgPutTotal|"
    r"^Message Body Path|"
    r"^dataVersion=|"  # of a table in RocksDB, which ours does not show
    r"^#Broker \d"  # RocketMQ's tool looks for the members of a set in the wrong place, and prints none
)


def rows(verb: Compared, printed: str, *, beside_tool_4: bool = False) -> Counter[str]:
    """The lines that count, with what differs by nature made equal, also to what an older tool shows."""
    if verb.name in _IN_JSON and "{" in printed:
        printed = _json_lines(printed)
    found: Counter[str] = Counter()
    for line in printed.splitlines():
        text = " ".join(line.split())
        for pattern, word in [*_EQUAL, *(_NOT_IN_TOOL_4 if beside_tool_4 and verb.name == "consumerProgress" else ())]:
            text = re.sub(pattern, word, text)
        text = re.sub(r"\{([^{}]*=[^{}]*)\}", lambda match: _sorted_map(match[1]), text)
        if code := re.search(r"CODE: (\d+)", text):  # what else is said of a failure is each tool's own
            return Counter({f"CODE: {code[1]}": 1})
        if text and (verb.name == "clusterRT" or not _OF_THE_MOMENT.search(text)):
            found[text] = 1
    return found


def _sorted_map(text: str) -> str:
    return "{" + ", ".join(sorted(text.split(", "))) + "}"


def _json_lines(text: str) -> str:
    """JSON, also with Java's bare number keys, one line for each member; what stands before it stays."""
    head, brace, rest = text.partition("{")
    body = re.sub(r"([{,]\s*)(\d+)(\s*:)", r'\1"\2"\3', brace + rest)
    try:
        content, _ = json.JSONDecoder().raw_decode(body)
    except ValueError:
        return text
    return head + "\n" + "\n".join(f"{key}={json.dumps(value, sort_keys=True)}" for key, value in content.items())
