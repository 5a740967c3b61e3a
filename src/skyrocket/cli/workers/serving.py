"""One process of a worker: consumers, their pages over HTTP, and an end in order."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from skyrocket.cli.program.lifetime import spare_the_collector, stop_on_signals, stop_with_parent
from skyrocket.cli.workers.application import consumers_of, load
from skyrocket.client import PushConsumer
from skyrocket.client.consumer.running import running
from skyrocket.client.core.client_metrics import ClientMetrics
from skyrocket.errors import ConfigError
from skyrocket.observability.exposition import CONTENT_TYPE
from skyrocket.observability.health import alive, readiness
from skyrocket.observability.http_endpoint import HttpEndpoint, Page
from skyrocket.remoting.listening import why_not_listening


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What one process is to do."""

    target: str
    folder: Path
    drain_seconds: float
    concurrency: int | None
    host: str
    port: int | None
    number: int = 0  # of the process, when there are several
    is_child: bool = False


async def serve(plan: WorkerPlan) -> None:
    """Until SIGTERM or SIGINT; raises ConfigError, and what a consumer's start raises."""
    stopping = stop_on_signals()
    if plan.is_child:
        stop_with_parent()
    async with contextlib.AsyncExitStack() as stack:
        consumers = await consumers_of(load(plan.target, plan.folder), stack, plan.target)
        metrics = ClientMetrics()
        for consumer in consumers:
            consumer.prepare_to_run(plan.drain_seconds, plan.concurrency)
            consumer.use(metrics)
            metrics.observe(consumer)
        port = await stack.enter_async_context(_pages(plan, consumers, metrics, stopping))
        await stack.enter_async_context(running(consumers))
        _tell(plan, consumers, port)
        spare_the_collector()
        await _until(stopping, consumers)
        typer.echo(f"worker {plan.number} (pid {os.getpid()}) stops: handlers have {plan.drain_seconds:g} s to end")
    typer.echo(f"worker {plan.number} (pid {os.getpid()}) has stopped")


async def _until(stopping: asyncio.Event, consumers: Sequence[PushConsumer]) -> None:
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(stopping.wait())]
    waits += [asyncio.ensure_future(consumer.wait_stopped()) for consumer in consumers]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _tell(plan: WorkerPlan, consumers: Sequence[PushConsumer], port: int | None) -> None:
    pages = "" if port is None else f"; http://{plan.host}:{port}/metrics /health /ready"
    for consumer in consumers:
        topics = ", ".join(consumer.subscribed_topics)
        typer.echo(f"worker {plan.number} (pid {os.getpid()}): {consumer} consumes {topics}{pages}")


@contextlib.asynccontextmanager
async def _pages(
    plan: WorkerPlan, consumers: Sequence[PushConsumer], metrics: ClientMetrics, stopping: asyncio.Event
) -> AsyncIterator[int | None]:
    """Health and metrics; the port, None without one."""
    if plan.port is None:
        yield None
        return

    def ready() -> Page:
        return readiness({str(consumer): partial(_why_not, consumer, stopping) for consumer in consumers})

    endpoint = HttpEndpoint(
        {"/metrics": lambda: Page(200, CONTENT_TYPE, metrics.page()), "/health": alive, "/ready": ready}
    )
    wanted = plan.port + plan.number if plan.port else 0
    try:
        port = await endpoint.listen(plan.host, wanted)
    except OSError as error:
        problem = why_not_listening(error, plan.host, wanted, port_option="--port", host_option="--host")
        raise ConfigError(problem) from None  # wrong usage ends the worker; what else fails is started again
    try:
        yield port
    finally:
        await endpoint.stop()


def _why_not(consumer: PushConsumer, stopping: asyncio.Event) -> str | None:
    if stopping.is_set():
        return "it is stopping"
    return None if consumer.is_connected else "no broker knows it yet: are name server and brokers up?"
