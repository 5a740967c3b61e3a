"""Runs in an environment of its own that has `rocketmq-python-client`: ENDPOINT TOPIC SECONDS → a line of JSON.

64 threads that send one after the other, then a push consumer whose listener only counts.
"""

import json
import sys
import threading
import time

import rocketmq as mq  # type: ignore[import-not-found]

THREADS = 64
BODY = b"x" * 128
PATIENCE_S = 60.0


def sending(configuration: mq.ClientConfiguration, topic: str, seconds: float) -> tuple[int, float]:
    producer = mq.Producer(configuration, (topic,))
    producer.startup()
    counts = [0] * THREADS
    began = time.perf_counter()
    deadline = began + seconds

    def work(number: int) -> None:
        while time.perf_counter() < deadline:
            message = mq.Message()
            message.topic = topic
            message.body = BODY
            producer.send(message)
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - began
    producer.shutdown()
    return sum(counts), passed


class Counting(mq.MessageListener):  # type: ignore[misc]
    def __init__(self, total: int) -> None:
        self.count = 0
        self.began = 0.0
        self.ended = 0.0
        self._total = total
        self._lock = threading.Lock()
        self.done = threading.Event()

    def consume(self, _: mq.Message) -> mq.ConsumeResult:
        with self._lock:
            self.began = self.began or time.perf_counter()
            self.count += 1
            self.ended = time.perf_counter()
            if self.count >= self._total:
                self.done.set()
        return mq.ConsumeResult.SUCCESS


def consuming(configuration: mq.ClientConfiguration, topic: str, total: int) -> float:
    listener = Counting(total)
    consumer = mq.PushConsumer(configuration, "BenchGrpcReaders", listener, {topic: mq.FilterExpression()})
    consumer.startup()
    listener.done.wait(PATIENCE_S)
    rate = listener.count / max(listener.ended - listener.began, 1e-9)
    consumer.shutdown()
    return rate


def main() -> None:
    endpoint, topic, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    configuration = mq.ClientConfiguration(endpoint, mq.Credentials())
    count, passed = sending(configuration, topic, seconds)
    print(json.dumps({"send": count / passed, "consume": consuming(configuration, topic, count)}), flush=True)


if __name__ == "__main__":
    main()
