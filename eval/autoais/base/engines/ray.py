"""The engine `ray`: each worker is an actor of a Ray cluster, with one CPU, or one GPU where the cluster has any.

Items of a lost worker go to other workers, and a new worker is started where there is room. Ray's own restarts
and retries are off: they tie an item to its actor, which waits for room although other workers are idle.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from autoais.base.errors import UserError, first_line, missing_extra
from autoais.base.io.provenance import versions
from autoais.base.terminal import note

In = TypeVar("In")
Out = TypeVar("Out")

_MAX_ITEMS = 2  # items that a worker has at a time: the next is there when one is done
_MAX_RESULTS = 4  # results kept for each worker while an earlier one is missing
_LOSSES = 4  # workers lost over one item, or lost before they were ready, until a run ends
_PATIENCE = 10.0  # seconds to wait for a cluster to answer
_SETTINGS = b"\x04"  # a frame of HTTP/2
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00" + _SETTINGS + b"\x00" * 5
_NOTICE_AFTER = 30.0  # seconds without any worker until a line says so
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # sends nothing to others
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise a warning
}
_AUTHENTICATION = {"RAY_AUTH_MODE": "token"}  # Ray listens on all interfaces, and runs what it is sent
_COMPUTE = (
    "python", "attributed-rag", "tantivy", "sentencex", "pystemmer", "numpy", "onnxruntime", "tokenizers", "torch",
    "transformers", "sentence-transformers",
)  # fmt: skip
_INHERITED_VARIABLES = ("HF_HUB_OFFLINE", "RAG_OFFLINE")  # what the driver may not do, workers may not do


class RayEngine:
    """The workers of a Ray cluster: as many as `workers`, or one for each of its GPUs or CPUs.

    `address` is `auto` (the cluster that this machine belongs to) or `host:port` of the machine where it was started;
    without one (and without the variable RAY_ADDRESS), Ray starts on this machine alone.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if address in (None, "auto"):
            address = os.environ.get("RAY_ADDRESS") or address
        variables = _QUIET | (_AUTHENTICATION if address in (None, "local") else {})
        os.environ.update({name: value for name, value in variables.items() if name not in os.environ})
        try:
            import ray
        except ImportError:
            raise missing_extra("the engine ray", "ray") from None
        self._ray: Any = ray
        self._open: tuple[object, _Pool] | None = None
        self._joined = not ray.is_initialized()
        if self._joined:
            _join(ray, address, workers)
        resources = ray.cluster_resources()
        self._on_gpus = resources.get("GPU", 0) >= 1
        self.workers = workers or max(1, int(resources.get("GPU" if self._on_gpus else "CPU", 1)))

    @property
    def ready(self) -> int:
        """The number of workers that had opened the model at the last result; measurements leave the start out."""
        return 0 if self._open is None else self._open[1].ready

    def map(self, make: Callable[[], Callable[[In], Out]], items: Iterable[In]) -> Iterator[Out]:
        """Yield the result of each item, in order."""
        return self._pool(make).map(items)

    def close(self) -> None:
        """End the workers and leave the cluster."""
        self._end()
        if self._joined:
            self._ray.shutdown()
            _show_reports(True)

    def _pool(self, make: object) -> "_Pool":
        if self._open is not None and self._open[0] == make:
            return self._open[1]
        self._end()  # otherwise there might be no room for others
        actor = self._ray.remote(_worker_class()).options(
            num_cpus=1, num_gpus=int(self._on_gpus), max_restarts=0, scheduling_strategy="SPREAD"
        )
        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        arguments = _computing(versions()), self._ray.cloudpickle.dumps(make), str(Path.cwd()), environment
        pool = _Pool(self._ray, lambda: actor.remote(*arguments), self.workers)
        self._open = make, pool
        return pool

    def _end(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None


def _join(ray: Any, address: str | None, workers: int | None) -> None:  # noqa: ANN401  (a module)
    """Connect to a cluster, or start Ray on this machine."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}  # Ray prints what workers print on standard output
    _show_reports(False)
    way_out = "start one with `ray start --head`, or name another address (--address)"
    try:
        if address in (None, "local"):
            with without_dashboard():
                ray.init(address="local", include_dashboard=False, num_cpus=workers, **quiet)
            return
        host_and_port = address
        if address == "auto":
            from ray._private.services import canonicalize_bootstrap_address

            host_and_port = canonicalize_bootstrap_address("auto")  # a cluster that ended may have left its address
        _check_answers(str(host_and_port))
        if address != "auto":
            way_out += "; a cluster with a token needs RAY_AUTH_MODE=token here too"
        ray.init(address=address, **quiet)
    except UserError:
        raise
    except Exception as error:  # Ray raises errors of many kinds, an address that is none raises others
        if address in (None, "local"):
            raise UserError(f"Ray does not start on this machine: {first_line(error)}") from error
        raise UserError(f"no Ray cluster at {address}: {first_line(error)}; {way_out}") from error


@contextmanager
def without_dashboard() -> Iterator[None]:
    """Start Ray without the process of its dashboard.

    That process asks the network which cloud this is, and may report to Ray's makers, also with `include_dashboard` and
    usage reports off.
    """
    from ray._private.node import Node

    start = Node.start_api_server
    Node.start_api_server = lambda node, **_: setattr(node, "_webui_url", "")
    try:
        yield
    finally:
        Node.start_api_server = start


def _show_reports(is_on: bool) -> None:
    """Switch Ray's messages about lost workers on or off; they go to standard output and have no option."""
    from ray._private import worker

    worker._worker_logs_enabled = is_on


def _check_answers(address: str) -> None:
    """Raise an error unless a server with HTTP/2 answers at host and port, as Ray's; Ray itself tries for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise UserError(f"address {address!r}: should be auto or host:port, such as 10.0.0.1:6379")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE) as connection:
        connection.sendall(_HELLO)
        if connection.recv(9)[3:4] != _SETTINGS:
            raise ConnectionError("another server answers there")


def _computing(packages: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the packages that compute results, without the build (torch's `+cpu`)."""
    return {name: version.partition("+")[0] for name, version in packages.items() if name in _COMPUTE}


def _worker_class() -> type:
    """The class of the actors. It is sent by value, so that a machine with another version can say so."""

    class Worker:
        """Makes the function of a pool, once, and applies it."""

        def __init__(self, versions: dict[str, str], payload: bytes, folder: str, environment: dict[str, str]) -> None:
            import contextlib
            import os

            self._versions, self._packed = versions, payload
            self._work: Any = None
            os.environ.update(environment)
            for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):  # it has one CPU
                os.environ.setdefault(name, "1")
            with contextlib.suppress(OSError):  # for relative paths
                os.chdir(folder)

        def open(self) -> str | None:
            """Make the function; return the reason if this machine cannot."""
            import importlib.metadata
            import pickle
            import platform

            node = f"node {platform.node()}"
            for name, expected in self._versions.items():
                try:
                    version = platform.python_version() if name == "python" else importlib.metadata.version(name)
                except importlib.metadata.PackageNotFoundError:
                    if name == "attributed-rag":  # others may not be needed
                        return f"{node} has no attributed-rag; install attributed-rag {expected} on it"
                    continue
                if version.partition("+")[0] != expected:
                    return f"{node} has {name} {version}, this machine {expected}; install {name} {expected} on both"
            from autoais.base.errors import UserError

            try:
                self._work = pickle.loads(self._packed)()
            except UserError as error:
                return f"{node}: {error}"
            return None

        def run(self, item: object) -> tuple[object, Exception | None]:
            """Return the result, or the error that people can fix."""
            import pickle

            from autoais.base.errors import UserError

            try:
                return self._work(item), None
            except UserError as error:
                try:
                    pickle.loads(pickle.dumps(error))
                except Exception:  # noqa: BLE001  (an error of somebody's own may need more arguments)
                    return None, UserError(str(error))
                return None, error

    return Worker


@dataclass(eq=False, slots=True)
class _Worker:
    """An actor, and the number of items that it has; `opening` is the call that makes its function."""

    actor: Any
    opening: Any
    ready: bool = False
    load: int = 0


@dataclass(slots=True)
class _Task:
    """An item, its place in the order, and how many workers were lost over it."""

    number: int
    item: Any
    losses: int = 0


class _Pool:
    """Workers with the same function. Items go to workers that are ready, the one with the fewest first."""

    def __init__(self, ray: Any, start: Callable[[], Any], size: int) -> None:  # noqa: ANN401
        self._ray, self._start = ray, start
        self._failures = 0
        self._workers = [self._start_worker() for _ in range(size)]

    @property
    def ready(self) -> int:
        """The number of workers that have made their function."""
        return sum(worker.ready for worker in self._workers)

    def _start_worker(self) -> _Worker:
        actor = self._start()
        return _Worker(actor, actor.open.remote())

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            self._ray.kill(worker.actor)

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of each item, in order."""
        source = iter(items)
        retries: deque[_Task] = deque()
        running: dict[Any, tuple[_Task, _Worker]] = {}
        results: dict[int, tuple[Any, Exception | None]] = {}
        count, next_number, has_more = 0, 0, True
        for worker in self._workers:
            worker.load = 0
        while True:
            while (free := self._free()) is not None:
                if retries:
                    task = retries.popleft()
                elif has_more and count - next_number < _MAX_RESULTS * len(self._workers):
                    try:
                        task = _Task(count, next(source))
                    except StopIteration:
                        has_more = False
                        break
                    count += 1
                else:
                    break
                running[free.actor.run.remote(task.item)] = task, free
                free.load += 1
            if not (has_more or running or retries):
                return
            for call in self._wait(running):
                task, worker = running.pop(call)
                worker.load -= 1
                try:
                    results[task.number] = self._ray.get(call)
                except self._ray.exceptions.RayTaskError as error:
                    results[task.number] = None, error
                except self._ray.exceptions.RayError as loss:
                    self._replace(worker)
                    retries.append(_retry(task, loss))
            while next_number in results:  # an error too waits for its turn: what comes before it is kept
                result, failure = results.pop(next_number)
                if failure is not None:
                    raise failure
                yield result
                next_number += 1

    def _free(self) -> _Worker | None:
        """The worker with the fewest items, if it can take one more."""
        ready = [worker for worker in self._workers if worker.ready and worker.load < _MAX_ITEMS]
        return min(ready, key=lambda worker: worker.load, default=None)

    def _wait(self, running: dict[Any, Any]) -> Sequence[Any]:
        """Wait until something is done; notice workers that are ready, and return the calls that are done."""
        opening = {worker.opening: worker for worker in self._workers if not worker.ready}
        completions: Sequence[Any] = ()
        is_announced = bool(running)
        while not completions:
            completions, _ = self._ray.wait([*running, *opening], timeout=None if is_announced else _NOTICE_AFTER)
            if not completions:
                note("ray: no worker is ready yet: the cluster has no room for one, or it is opening the model")
                is_announced = True
        for call in completions:
            if call in opening:
                self._finish_opening(opening[call])
        return [call for call in completions if call in running]

    def _finish_opening(self, worker: _Worker) -> None:
        try:
            problem = self._ray.get(worker.opening)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as loss:
            self._failures += 1
            if self._failures == _LOSSES:
                raise UserError(f"ray: {_LOSSES} workers ended before they were ready: {first_line(loss)}") from loss
            self._replace(worker)
            return
        if problem is not None:
            raise UserError(problem)
        worker.ready, self._failures = True, 0

    def _replace(self, worker: _Worker) -> None:
        """Start a worker in the place of a lost one, unless that is done already."""
        if worker in self._workers:
            note("ray: a worker was lost; others go on, and a new one is started where there is room")
            self._ray.kill(worker.actor)
            self._workers[self._workers.index(worker)] = self._start_worker()


def _retry(task: _Task, loss: Exception) -> _Task:
    task.losses += 1
    if task.losses == _LOSSES:
        raise UserError(
            f"ray: {_LOSSES} workers were lost over the same item ({first_line(loss)}); Ray's logs say why, often that "
            "the memory was full: give fewer workers (--workers)"
        ) from loss
    return task
