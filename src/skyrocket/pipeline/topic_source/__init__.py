"""format("rocketmq") for reading: topics as batch DataFrames and as streams."""
