"""A Ray cluster on this machine with nodes that tests start and kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster

NODES = 3
STORE_BYTES = 80_000_000
LIMIT_S = 90.0
SETTINGS = {
    # No usage statistics, and no output of the processes.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    # The default niceness of workers is 15, so they are slow while other programs run.
    "RAY_worker_niceness": "0",
    # A killed node, whose port is closed, is dead after 2 s, by default after 15 s. A busy node is dead after ten
    # checks without an answer within 10 s, by default after five.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "200",
    "RAY_health_check_failure_threshold": "10",
}


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds, and return its value; a hang fails.

    Args:
        condition: called repeatedly.
        what: description for the message.
    """
    end = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {LIMIT_S:.0f} s: {what}"
        time.sleep(0.1)
    return value


def worker_processes() -> list[int]:
    """Return the process ids of the actors on this machine, from the operating system."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        words = process.info["cmdline"] or [""]
        if words[0].startswith("ray::RayWorker"):
            found.append(process.info["pid"])
    return found


@contextmanager
def separate_cluster() -> Iterator[Cluster]:
    """Start another cluster, for a test that damages it: a head without CPUs, and a node with one CPU."""
    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    session = cluster.head_node.get_session_dir_path()
    try:
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        yield cluster
    finally:
        cluster.shutdown()
        for process in psutil.process_iter(["cmdline"]):  # without a head, some do not notice the end of their node
            if any(session in word for word in process.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


class RayCluster:
    """A head node without CPUs, where the tests run, and nodes with one CPU each."""

    def __init__(self) -> None:
        os.environ.update(SETTINGS)
        self._start()

    def _start(self) -> None:
        head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []
        # While only the head exists, because Ray connects to any node of this machine, which must not be killed then.
        ray.init(address=self.cluster.address, logging_level="ERROR", log_to_driver=False)
        self.fill_up()

    def add(self, **options: Any) -> Any:
        """Start a node with one CPU, and return it.

        Args:
            options: options of the node.
        """
        node = self.cluster.add_node(**{"num_cpus": 1, "object_store_memory": STORE_BYTES, **options})
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Kill a node as after a power failure of its machine."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    def fill_up(self) -> None:
        """Start nodes until there are three with free CPUs; workers of a failed test and dead nodes are removed.

        If a process of the head has died, all nodes are replaced.
        """
        if self.cluster.head_node.dead_processes():
            self.close()
            self._start()
            return
        for process in worker_processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for node in list(self.nodes):
            if node.dead_processes():  # Ray ends a node that has missed heartbeats, for example on a busy machine
                self.kill(node)
        while len(self.nodes) < NODES:
            self.add()
        eventually(lambda: ray.available_resources().get("CPU", 0) == NODES, f"{NODES} free CPUs")

    def close(self) -> None:
        """End all processes."""
        ray.shutdown()
        self.cluster.shutdown()
