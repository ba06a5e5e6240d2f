"""``LoaderEvaluator``: times the batches of a torch DataLoader, or replays cached batches."""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from dalify.base.errors import PipelineStateError
from dalify.base.whole_files import write_file
from dalify.base.wording import counted


class LoaderEvaluator:
    """Wraps a torch DataLoader to measure it, without other changes to the program.

    The mode ``log`` measures the time of each batch. In the mode ``replay`` the constructor iterates over the loader
    once and caches its last ``num_cached_batches`` batches. Each epoch then repeats these, with the loader's number of
    batches, so that training runs as fast as with an infinitely fast loader.

    Args:
        dataloader: the loader to measure.
        mode: ``log`` or ``replay``; other values mean ``log``.
        num_cached_batches: maximum number of cached batches for ``replay``.
        metrics_file: default path for ``save_metrics``.
    """

    def __init__(
        self,
        dataloader: DataLoader[Any],
        mode: str = "log",
        num_cached_batches: int = 20,
        metrics_file: str | None = None,
    ) -> None:
        self.dataloader = dataloader
        self.mode = mode
        self.num_cached_batches = num_cached_batches
        self.metrics_file = metrics_file
        self.cached_batches: deque[Any] = deque(maxlen=num_cached_batches)
        self.batch_times: list[float] = []
        self.start_time: float | None = None
        self.end_time: float | None = None
        if mode == "replay":
            self.cached_batches.extend(dataloader)

    @property
    def cache_ready(self) -> bool:
        """Whether any batches are cached."""
        return bool(self.cached_batches)

    def __len__(self) -> int:
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of an epoch.

        Raises:
            PipelineStateError: in the mode ``replay``, no batches are cached.
        """
        if self.mode == "replay" and not self.cached_batches:
            raise PipelineStateError.here("the mode replay has no cached batches.")
        if self.mode != "replay":
            return self._timed(iter(self.dataloader))
        return self._timed(itertools.islice(itertools.cycle(self.cached_batches), len(self.dataloader)))

    def _timed(self, batches: Iterator[Any]) -> Iterator[Any]:
        self.start_time, self.end_time = time.time(), None
        self.batch_times = []
        while True:
            begin = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                break
            self.batch_times.append(time.perf_counter() - begin)
            yield batch
        self.end_time = time.time()

    def get_metrics(self) -> dict[str, Any]:
        """Return the times of the last epoch, in seconds; an empty dictionary before its first batch.

        Returns:
            mode, total_batches, total_time, avg_batch_time, min_batch_time, max_batch_time, batch_times,
            cached_batches, cache_ready. ``total_time`` is 0 until the epoch is over.
        """
        times = self.batch_times
        if not times:
            return {}
        is_over = self.start_time is not None and self.end_time is not None
        return {
            "mode": self.mode,
            "total_batches": len(times),
            "total_time": self.end_time - self.start_time if is_over else 0,  # pyright: ignore[reportOperatorIssue]
            "avg_batch_time": sum(times) / len(times),
            "min_batch_time": min(times),
            "max_batch_time": max(times),
            "batch_times": list(times),
            "cached_batches": len(self.cached_batches),
            "cache_ready": self.cache_ready,
        }

    def save_metrics(self, filename: str | None = None) -> None:
        """Write the metrics to a file, as JSON.

        Args:
            filename: path of the file; None: ``metrics_file``. Without either nothing is written.
        """
        filename = filename or self.metrics_file
        if filename is None:
            print("There is no file name to save the metrics to.")
            return
        write_file(filename, json.dumps(self.get_metrics(), indent=2).encode())
        print(f"Metrics saved to: {filename}")

    def print_summary(self) -> None:
        """Print the sizes of the loader and the times of the last epoch."""
        dataset: Any = self.dataloader.dataset
        print(f"Loader evaluator, mode {self.mode}")
        print(
            f"  {counted(len(dataset), 'sample')}, {counted(len(self), 'batch')}, {len(self.cached_batches)} of them "
            "kept"
        )
        metrics = self.get_metrics()
        if metrics:
            print(f"  {counted(metrics['total_batches'], 'batch')} in {metrics['total_time']:.2f} s")
            for name in ("avg", "min", "max"):
                print(f"  {name} {metrics[f'{name}_batch_time']:.4f} s per batch")
