"""Messages as Arrow columns, into polars, DuckDB and pandas. Run: python examples/client_arrow.py

Needs pyarrow for the consumer, and polars, duckdb and pandas for what is done with the columns.
"""

import asyncio
import logging

import duckdb
import polars as pl
import pyarrow as pa
from local_server import name_server

from skyrocket.client import LitePullConsumer, LitePullSettings, Message, Producer

log = logging.getLogger("example")
ORDERS = 1000


async def main(names: str) -> None:
    async with Producer("Shop", names) as producer:
        orders = [
            Message.json("Orders", {"order": i, "cents": i % 100}, tags="paid" if i % 4 else "open")
            for i in range(ORDERS)
        ]
        await producer.send_batch(orders)

    columns = ["queueId", "queueOffset", "storeTimestamp", "tags", "body"]
    batches: list[pa.RecordBatch] = []
    async with LitePullConsumer("Report", names, LitePullSettings(auto_commit=False)) as consumer:
        await consumer.subscribe("Orders")
        async for batch in consumer.arrow_batches(columns=columns):
            batches.append(batch)
            if sum(each.num_rows for each in batches) == ORDERS:
                break
        await consumer.commit()  # all that was handed out, as for messages

    table = pa.Table.from_batches(batches)  # no copy
    frame = pl.DataFrame(table)
    cents = frame["body"].cast(pl.String).str.json_decode(pl.Struct({"order": pl.Int64, "cents": pl.Int64}))
    log.info("polars: %d cents", cents.struct.field("cents").sum())
    with duckdb.connect() as memory:
        memory.register("orders", table)
        found = memory.execute("SELECT tags, count(*) FROM orders GROUP BY tags ORDER BY tags").fetchall()
    log.info("DuckDB: %s", found)
    log.info("pandas: %s", table.to_pandas()["tags"].value_counts().to_dict())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
