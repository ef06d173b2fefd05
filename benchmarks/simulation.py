"""A cluster in a few hundred lines: tasks, what they wait for, a scheduler, workers that are lost.

A discrete-event simulation. The scheduler takes a fixed time for a task, one after the other. A
task goes to the worker that holds most of what it needs if that one is free, to any free one if
not, and waits if there is none; what it needs from elsewhere is fetched first. A lost worker loses
what it runs and holds: what somebody still waits for is made again, and what that needs too, as
Dask does. It comes back empty after a while.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

WAITING, READY, QUEUED, RUNNING, DONE = range(5)
_ASSIGN, _FINISH, _LOSS, _BACK = range(4)


@dataclass(slots=True)
class Task:
    """Some work.

    Parameters
    ----------
    seconds : float
        Of work, once all that is needed is there.
    needs : sequence of int
        Tasks before this one, by their number.
    size : float
        Bytes of what it makes.
    client : bool
        Whether the client does it, which is never lost.
    source : bool
        Whether what it makes is there at the start, and is kept: made again only after a loss.
    events : float
        How often the scheduler takes its time for it.
    """

    seconds: float
    needs: Sequence[int] = ()
    size: float = 0.0
    client: bool = False
    source: bool = False
    events: float = 1.0


@dataclass(frozen=True)
class Network:
    """What is not work: a task's time in the scheduler, and bytes between workers."""

    overhead: float = 0.0
    """Seconds of the scheduler for a task."""
    bandwidth: float = np.inf
    """Bytes a second that a worker, or the client, can receive."""
    latency: float = 0.0
    """Seconds of a fetch."""
    restart: float = 10.0
    """Seconds until a lost worker is back."""


@dataclass
class Outcome:
    """What a simulation found."""

    seconds: float = 0.0
    moved: float = 0.0
    """Bytes."""
    worked: float = 0.0
    """Seconds of work of all workers, with what was lost."""
    runs: int = 0
    """Tasks that ended, those that were made again included."""
    lost: int = 0
    """Workers."""


def stragglers(count: int, seed: int, *, share: float = 0.02, most: float = 20.0) -> np.ndarray:
    """Return how many times as long each task takes: a few of them much longer, by Pareto's law."""
    random = np.random.default_rng(seed)
    slow = np.minimum(1 + random.pareto(1.1, count), most)
    return np.where(random.random(count) < share, slow, 1.0)


def losses(workers: int, seconds: float, per_hour: float, seed: int) -> list[tuple[float, int]]:
    """Return when which workers are lost, each ``per_hour`` times an hour, up to some time."""
    random = np.random.default_rng(seed)
    count = random.poisson(workers * per_hour * seconds / 3600)
    times = np.sort(random.uniform(0, seconds, count))
    return list(zip(times.tolist(), random.integers(workers, size=count).tolist(), strict=True))


@dataclass
class Cluster:
    """Workers, and the tasks that they have to do."""

    tasks: Sequence[Task]
    workers: int
    network: Network = field(default_factory=Network)
    slow: Sequence[float] | None = None
    """How many times as long each task takes."""

    def run(self, lost: Sequence[tuple[float, int]] = ()) -> Outcome:
        """Do all tasks; lose these workers at these times."""
        self._prepare()
        for time, worker in lost:
            self._push(time, _LOSS, worker)
        for number, state in enumerate(self._state):
            if state == WAITING and self._missing[number] == 0:
                self._ready(number, 0.0)
        while self._left and self._events:
            time, _, kind, what = heapq.heappop(self._events)
            if kind == _ASSIGN:
                self._assign(what, time)
            elif kind == _FINISH:
                self._finish(*what, time)
            elif kind == _LOSS:
                self._lose(what, time)
            else:
                self._alive[what] = True
                self._free(what, time)
        if self._left:
            raise RuntimeError(f"{self._left} tasks wait for something that never comes.")
        return self._outcome

    def _prepare(self) -> None:
        tasks, count = self.tasks, len(self.tasks)
        self._state = [DONE if task.source else WAITING for task in tasks]
        self._left = count - sum(task.source for task in tasks)
        self._missing = [sum(not tasks[one].source for one in task.needs) for task in tasks]
        self._followers: list[list[int]] = [[] for _ in tasks]
        for number, task in enumerate(tasks):
            for one in task.needs:
                self._followers[one].append(number)
        self._wanted = [len(some) for some in self._followers]
        # Workers are 0, 1, …; the client comes after them; -1 is nowhere.
        self._place = [
            number % self.workers if task.source else -1 for number, task in enumerate(tasks)
        ]
        self._held: list[set[int]] = [set() for _ in range(self.workers + 1)]
        for number, place in enumerate(self._place):
            if place >= 0:
                self._held[place].add(number)
        self._alive = [True] * (self.workers + 1)
        self._life = [0] * (self.workers + 1)
        self._running = [-1] * (self.workers + 1)
        self._idle = set(range(self.workers))
        self._queues: list[deque[int]] = [deque() for _ in range(self.workers + 1)]
        self._pool: deque[int] = deque()
        self._events: list[tuple[float, int, int, object]] = []
        self._count, self._scheduler, self._outcome = 0, 0.0, Outcome()

    def _push(self, time: float, kind: int, what: object) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, kind, what))

    def _ready(self, number: int, time: float) -> None:
        self._state[number] = READY
        cost = self.network.overhead * self.tasks[number].events
        self._scheduler = max(self._scheduler, time) + cost
        self._push(self._scheduler, _ASSIGN, number)

    def _home(self, number: int) -> int:
        """Return the worker that holds most of what a task needs."""
        task, best, most = self.tasks[number], number % self.workers, -1.0
        if task.client:
            return self.workers
        for one in task.needs:
            if 0 <= self._place[one] < self.workers and self.tasks[one].size > most:
                best, most = self._place[one], self.tasks[one].size
        return best

    def _assign(self, number: int, time: float) -> None:
        if self._state[number] != READY or self._missing[number]:
            return  # what it needs was lost meanwhile
        home = self._home(number)
        if home == self.workers:
            if self._running[home] < 0:
                self._start(number, home, time)
                return
        elif home in self._idle:
            self._start(number, home, time)
            return
        elif self._idle:
            self._start(
                number, min(self._idle) if len(self._idle) < 8 else next(iter(self._idle)), time
            )
            return
        else:
            self._pool.append(number)
        self._state[number] = QUEUED
        self._queues[home].append(number)

    def _start(self, number: int, worker: int, time: float) -> None:
        task = self.tasks[number]
        far = sum(self.tasks[one].size for one in task.needs if self._place[one] != worker)
        fetch = self.network.latency + far / self.network.bandwidth if far else 0.0
        work = task.seconds * (1.0 if self.slow is None or task.client else self.slow[number])
        self._outcome.moved += far
        self._state[number] = RUNNING
        self._running[worker] = number
        self._idle.discard(worker)
        self._outcome.worked += 0.0 if task.client else work
        self._push(time + fetch + work, _FINISH, (number, worker, self._life[worker]))

    def _finish(self, number: int, worker: int, life: int, time: float) -> None:
        if self._life[worker] != life:
            return  # it was lost meanwhile
        self._state[number], self._place[number] = DONE, worker
        self._held[worker].add(number)
        self._left -= 1
        self._outcome.seconds = time
        self._outcome.runs += 1
        for one in self._followers[number]:
            if self._state[one] != DONE:
                self._missing[one] -= 1
                if self._missing[one] == 0 and self._state[one] == WAITING:
                    self._ready(one, time)
        for one in self.tasks[number].needs:
            self._wanted[one] -= 1
            if self._wanted[one] == 0 and not self.tasks[one].source:
                self._let_go(one)
        self._running[worker] = -1
        self._free(worker, time)

    def _let_go(self, number: int) -> None:
        if self._place[number] >= 0:
            self._held[self._place[number]].discard(number)
            self._place[number] = -1

    def _free(self, worker: int, time: float) -> None:
        """Let a worker take what waits: its own first, then anybody's."""
        for queue in (
            (self._queues[worker], self._pool) if worker < self.workers else (self._queues[worker],)
        ):
            while queue:
                number = queue.popleft()
                if self._state[number] == QUEUED and not self._missing[number]:
                    self._start(number, worker, time)
                    return
        if worker < self.workers:
            self._idle.add(worker)

    def _lose(self, worker: int, time: float) -> None:
        if not self._alive[worker]:
            return
        self._outcome.lost += 1
        self._alive[worker] = False
        self._life[worker] += 1
        self._idle.discard(worker)
        running, self._running[worker] = self._running[worker], -1
        if running >= 0:
            self._state[running] = WAITING
        gone = [one for one in self._held[worker] if self._wanted[one] or self.tasks[one].source]
        for one in self._held[worker]:
            self._place[one] = -1
        self._held[worker] = set()
        for one in gone:
            if self._wanted[one]:
                self._again(one, time)
        if running >= 0 and not self._missing[running]:
            self._ready(running, time)
        self._queues[worker].clear()  # they wait in the pool too
        self._push(time + self.network.restart, _BACK, worker)

    def _again(self, number: int, time: float) -> None:
        """Let a task be done once more, and what it needs that nobody holds."""
        if self._state[number] != DONE:
            return
        self._state[number] = WAITING
        self._left += 1
        for one in self._followers[number]:
            if self._state[one] not in (DONE, RUNNING):
                self._missing[one] += 1
                self._state[one] = WAITING
            elif self._state[one] == RUNNING:
                self._missing[one] += 1  # it has what it needs: the end takes this back
        missing = 0
        for one in self.tasks[number].needs:
            self._wanted[one] += 1
            if self._place[one] < 0:
                if self._state[one] == DONE:
                    self._again(one, time)
                missing += 1
        self._missing[number] = missing
        if not missing:
            self._ready(number, time)
