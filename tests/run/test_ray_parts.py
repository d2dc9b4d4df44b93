"""The engine of Ray tasks, on a Ray that runs each task here. tests/clusters has a real one."""

import logging
import os
import pickle
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.run import ray_parts
from gristmill.run.ray_parts import RayError, RayParts
from gristmill.run.workers import WorkerDied


class OfRay(Exception):
    """The base of Ray's errors."""


class Crashed(OfRay):
    """A worker died."""


class Ray:
    """What the engine asks of the module `ray`. The latest task that was sent is done first.

    deaths: by argument of a task, how often its worker dies. quiet: waits that bring nothing.
    """

    def __init__(self) -> None:
        self.deaths: dict[bytes, int] = {}
        self.asked: list[dict[str, Any]] = []
        self.cancelled: list[int] = []
        self.there: dict[str, float] = {"CPU": 2.0, "memory": 1000.0}
        self.begun = self.flying = self.most = self.quiet = 0
        self.started: str | None = None
        self.next = max
        self.refusal: Exception | None = None
        self.tasks: dict[int, Any] = {}
        self.exceptions = SimpleNamespace(
            RayError=OfRay,
            WorkerCrashedError=Crashed,
            NodeDiedError=Crashed,
            OutOfMemoryError=Crashed,
            ObjectLostError=Crashed,
        )

    def is_initialized(self) -> bool:
        return self.started is not None

    def init(self, address: str, **_: Any) -> None:
        if self.refusal:
            raise self.refusal
        self.started = address

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Any:
        self.asked.append(options)

        def send(function: Any, *words: Any) -> int:
            self.begun += 1
            self.flying += 1
            self.most = max(self.most, self.flying)
            self.tasks[self.begun] = lambda: self._run(function, *words)
            return self.begun

        return lambda function: SimpleNamespace(remote=lambda *words: send(function, *words))

    def _run(self, function: Any, packed: bytes, key: str, task: bytes, names: Any) -> Any:
        if self.deaths.get(task, 0):
            self.deaths[task] -= 1
            raise Crashed("The worker died. See the log.\nMore.")
        return function(packed, key, task, names)

    def wait(self, pending: list[int], num_returns: int, timeout: float) -> Any:
        if self.quiet:
            self.quiet -= 1
            return [], pending
        return [self.next(pending)], []

    def get(self, task: int) -> Any:
        self.flying -= 1
        return self.tasks.pop(task)()

    def cancel(self, task: int, force: bool) -> None:
        assert force
        self.cancelled.append(task)
        if len(self.cancelled) == 1:
            raise OfRay("it has ended already")

    def cluster_resources(self) -> dict[str, float]:
        return self.there

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 0.5}


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    made = Ray()
    monkeypatch.setitem(sys.modules, "ray", made)  # type: ignore[arg-type]
    return made


def double(number: int) -> int:
    if number == 40:
        raise BadInput("file", "40 is none")
    return 2 * number


def variable(name: str) -> str | None:
    return os.environ.get(name)


def test_results_come_in_the_order_of_the_tasks(ray):
    engine = RayParts("there:1", cpus=1, memory=7)
    assert list(engine(double, range(20), 1)) == list(range(0, 40, 2))
    assert ray.started == "there:1" and ray.begun == 20 and ray.cancelled == []
    (asked,) = ray.asked
    # A lost task is sent again by the engine, which knows which part it is.
    assert (asked["num_cpus"], asked["memory"], asked["max_retries"]) == (1, 7, 0)
    assert list(engine(double, [], 1)) == []


@pytest.mark.parametrize(
    ("engine", "workers", "most"),
    [
        (RayParts(), 1, 4),  # the cluster has two places
        (RayParts(), 5, 10),
        (RayParts(cpus=0.5), 1, 8),
        (RayParts(memory=300), 1, 4),
        (RayParts(memory=1000), 1, 2),
        (RayParts(cpus=5), 1, 2),
    ],
)
def test_twice_the_places_of_the_cluster_are_in_flight(ray, engine, workers, most):
    assert list(engine(double, range(39), workers)) == list(range(0, 78, 2))
    assert ray.most == most


def test_no_memory_is_asked_for_unless_it_is_set(ray):
    assert list(RayParts()(double, [1], 1)) == [2]
    assert ray.asked[0]["memory"] is None


def test_a_place_that_joins_later_gets_tasks(ray, monkeypatch):
    now = 100.0
    monkeypatch.setattr(ray_parts.time, "monotonic", lambda: now)
    results = RayParts()(double, range(40), 1)
    assert next(results) == 0 and ray.begun == 4
    ray.there["CPU"] = 6.0
    now += ray_parts._WAIT_SECONDS
    assert next(results) == 2 and ray.begun == 1 + 4  # it is asked again after that time only
    now += 1
    assert next(results) == 4 and ray.begun == 2 + 12
    results.close()


def test_the_task_of_a_dead_worker_is_sent_again_and_the_log_says_so(ray, caplog):
    task = pickle.dumps(3, pickle.HIGHEST_PROTOCOL)
    ray.deaths = {task: 3}
    with caplog.at_level(logging.WARNING):
        assert list(RayParts(retries=3)(double, range(6), 1)) == [0, 2, 4, 6, 8, 10]
    said = "a part is made again, since its worker on Ray died: The worker died"
    assert caplog.messages == [said] * 3 and ray.begun == 6 + 3
    ray.deaths = {task: 3}
    with pytest.raises(WorkerDied, match=r"lost 3 times .* Crashed: The worker died\. If memory"):
        list(RayParts(retries=2)(double, range(6), 1))
    ray.deaths = {task: 1}
    with pytest.raises(WorkerDied, match="lost 1 times"):
        list(RayParts(retries=0)(double, range(6), 1))


def test_an_error_of_a_task_is_raised_with_its_traceback_and_the_others_are_cancelled(ray):
    results = RayParts()(double, range(37, 60), 1)
    with pytest.raises(BadInput, match="40 is none") as raised:
        list(results)
    assert "in double" in str(raised.value.__cause__)
    assert ray.cancelled  # an answer that the task has ended stops nothing


def test_a_closed_build_cancels_its_tasks(ray):
    ray.next = min
    results = RayParts()(double, range(30), 1)
    assert [next(results), next(results)] == [0, 2]
    results.close()
    assert ray.begun == 5 and ray.cancelled == [3, 4, 5]


def test_a_cluster_that_makes_nothing_is_in_the_log(ray, caplog, monkeypatch):
    times: Iterator[float] = iter(range(0, 10_000, 25))
    monkeypatch.setattr(ray_parts.time, "monotonic", lambda: next(times))
    ray.quiet = 4
    with caplog.at_level(logging.WARNING):
        assert list(RayParts(cpus=4)(double, [1], 1)) == [2]
    (line,) = caplog.messages
    assert "no part was finished for 60 s" in line and "0.5 CPUs free" in line
    assert line.endswith("a part asks for 4")


def test_a_worker_gets_the_variables_of_the_build_and_keeps_its_own(ray, monkeypatch):
    monkeypatch.setenv("GRISTMILL_OF_THE_BUILD", "1")
    monkeypatch.setenv("SECRET_OF_THE_BUILD", "2")
    seen: list[dict[str, str]] = []
    run = ray_parts._run

    def on_node(packed: bytes, key: str, task: bytes, names: dict[str, str]) -> bytes:
        seen.append(names)
        monkeypatch.delenv("GRISTMILL_OF_THE_BUILD", raising=False)
        return run(packed, key, task, names)

    monkeypatch.setattr(ray_parts, "_run", on_node)
    assert list(RayParts()(variable, ["GRISTMILL_OF_THE_BUILD"], 1)) == ["1"]
    assert "SECRET_OF_THE_BUILD" not in seen[0]
    monkeypatch.setenv("GRISTMILL_OF_THE_NODE", "own")
    ray_parts._run(b"", "", b"", {"GRISTMILL_OF_THE_NODE": "the build's"})
    assert os.environ["GRISTMILL_OF_THE_NODE"] == "own"


def test_without_ray_or_a_cluster_the_error_says_what_to_do(ray, monkeypatch):
    ray.refusal = ConnectionError("nothing listens there\nand more")
    with pytest.raises(RayError, match=r"no Ray cluster at 'x:1' \(ray_address\): nothing listens"):
        list(RayParts("x:1")(double, [1], 1))
    ray.refusal = RuntimeError("")
    with pytest.raises(RayError, match="RuntimeError"):
        list(RayParts("x:1")(double, [1], 1))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RayError, match=r"need the extra `ray`: pip install 'gristmill\[ray\]'"):
        list(RayParts()(double, [1], 1))


def test_the_function_is_unpacked_once_for_a_build(ray):
    first = list(RayParts()(double, [1, 2], 1))
    kept = ray_parts._unpacked
    assert first == [2, 4] and kept is not None and kept[1] is double
    assert list(RayParts()(abs, [-1], 1)) == [1]
    assert ray_parts._unpacked is not None and ray_parts._unpacked[0] != kept[0]
