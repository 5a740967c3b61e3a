"""What one batch of one sink has done, from what Spark tells about it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class BatchDone:
    pipeline: str
    sink: str
    batch: int
    rows_in: int
    rows_out: int  # -1 where the sink does not count
    milliseconds: int
    malformed: int  # bodies that could not be decoded
    watermark: str | None  # events before it are late

    def line(self) -> str:
        """As a line for people."""
        out = "" if self.rows_out < 0 else f", {self.rows_out} out"
        bad = f", {self.malformed} malformed" if self.malformed else ""
        late = f", watermark {self.watermark}" if self.watermark else ""
        what = f"batch {self.batch}, {self.rows_in} in{out}, {self.milliseconds} ms{bad}{late}"
        return f"{self.pipeline} ▸ {self.sink}: {what}"

    def json(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self))


def batch_done(pipeline: str, sink: str, told: Mapping[str, Any]) -> BatchDone:
    """From the JSON of a StreamingQueryProgress."""
    observed = (told.get("observedMetrics") or {}).items()
    watermark = (told.get("eventTime") or {}).get("watermark")
    return BatchDone(
        pipeline=pipeline,
        sink=sink,
        batch=int(told["batchId"]),
        rows_in=int(told.get("numInputRows") or 0),
        rows_out=int((told.get("sink") or {}).get("numOutputRows", -1)),
        milliseconds=int((told.get("durationMs") or {}).get("triggerExecution", 0)),
        malformed=sum(int(values["malformed"]) for name, values in observed if name.startswith("decode_")),
        watermark=None if watermark is None or watermark.startswith("1970-01-01") else watermark,
    )
