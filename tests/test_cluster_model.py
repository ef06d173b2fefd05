"""The simulation of a cluster is held against what must be true of any."""

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks import cluster_model
from benchmarks.simulation import Cluster, Network, Task, losses, stragglers
from benchmarks.timing import table


def tree(leaves, seconds, fan=8):
    """Tasks on rows that are there, and their sums in a tree, which the client fetches."""
    tasks = [Task(seconds, (), 1e6, source=True) for _ in range(leaves)]
    level = list(range(leaves, 2 * leaves))
    tasks += [Task(seconds, (one,), 1e5) for one in range(leaves)]
    while len(level) > 1:
        groups = [level[first : first + fan] for first in range(0, len(level), fan)]
        level = list(range(len(tasks), len(tasks) + len(groups)))
        tasks += [Task(seconds / 10, group, 1e5) for group in groups]
    tasks.append(Task(0.5, level, client=True))
    return tasks


def critical_path(tasks):
    ends = []
    for task in tasks:
        start = max((ends[one] for one in task.needs), default=0.0)
        ends.append(start + (0.0 if task.source else task.seconds))
    return max(ends)


def work(tasks):
    return sum(task.seconds for task in tasks if not task.source)


def test_one_worker_takes_the_sum_of_all_tasks():
    tasks = tree(20, 2.0)
    assert Cluster(tasks, 1).run().seconds == pytest.approx(work(tasks))


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 40, 100])
def test_equal_tasks_take_as_many_rounds_as_they_fill(workers):
    found = Cluster([Task(3.0) for _ in range(40)], workers).run()
    assert found.seconds == pytest.approx(3.0 * math.ceil(40 / workers))
    assert found.runs == 40


@pytest.mark.parametrize("workers", [2, 5, 30])
def test_no_schedule_is_faster_than_its_longest_path_or_slower_than_grahams_bound(workers):
    tasks = tree(64, 1.0)
    slow = stragglers(len(tasks), 3)
    stretched = [
        Task(task.seconds * (1 if task.client else slow[i]), task.needs, source=task.source)
        for i, task in enumerate(tasks)
    ]
    seconds = Cluster(tasks, workers, slow=slow).run().seconds
    least = max(critical_path(stretched), work(stretched) / workers)
    assert least - 1e-9 <= seconds <= work(stretched) / workers + critical_path(stretched) + 1e-9


def test_the_scheduler_is_a_bound_that_workers_do_not_move():
    tasks = [Task(0.001) for _ in range(1000)]
    seconds = [Cluster(tasks, w, Network(overhead=0.01)).run().seconds for w in (10, 100, 1000)]
    assert seconds == pytest.approx([10.001] * 3, rel=1e-3)


def test_what_is_elsewhere_is_fetched_and_what_is_here_is_not():
    rows = [Task(0.0, (), 1e6, source=True) for _ in range(4)]
    alone = [*rows, *(Task(1.0, (one,)) for one in range(4))]
    assert Cluster(alone, 4, Network(bandwidth=1e6)).run().moved == 0
    together = [*rows, Task(1.0, range(4))]
    found = Cluster(together, 4, Network(bandwidth=1e6, latency=0.25)).run()
    assert found.moved == 3e6
    assert found.seconds == pytest.approx(1 + 3 + 0.25)


@pytest.mark.parametrize("when", [0.0, 0.3, 1.5, 4.2, 6.9])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_loss_costs_nothing_at_least_and_what_was_held_at_most(workers, when):
    tasks, network = tree(16, 1.0), Network(restart=2.0)
    calm = Cluster(tasks, workers, network).run()
    found = Cluster(tasks, workers, network).run([(when, 0)])
    held = 2 * math.ceil(16 / workers) + 3 + 1  # its rows, what it made of them, sums, one at work
    assert calm.seconds - 1e-9 <= found.seconds <= calm.seconds + network.restart + held
    assert found.lost == int(when < calm.seconds)
    assert found.runs >= calm.runs


def test_all_is_done_however_many_workers_are_lost():
    tasks = tree(60, 1.0)
    lost = losses(6, 60.0, 300.0, seed=1)
    assert len(lost) > 20
    found = Cluster(tasks, 6, Network(restart=1.0)).run(lost)
    assert found.runs > len(tasks) - 60
    assert found.seconds > Cluster(tasks, 6).run().seconds


def test_the_same_seed_gives_the_same_simulation():
    tasks = tree(100, 1.0)
    runs = [
        Cluster(tasks, 9, Network(0.01), stragglers(len(tasks), 5)).run(losses(9, 30, 60, 2))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    slow = stragglers(100_000, 0)
    assert slow.min() == 1
    assert slow.max() == 20
    assert np.mean(slow > 1) == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize("method", list(cluster_model.PLANS))
def test_more_workers_are_no_slower_and_never_faster_than_the_work_allows(method):
    constants = cluster_model.Constants.kept()
    costs = [cluster_model.cost_of(method, 400_000, workers, constants) for workers in (1, 4, 64)]
    seconds = [cost.seconds for cost in costs]
    assert seconds[0] >= costs[0].worked
    assert seconds[1] >= costs[1].worked / 4
    assert seconds[0] > seconds[1] > 0.9 * seconds[2]
    assert len({cost.tasks for cost in costs}) == 1


def test_the_page_on_clusters_shows_what_the_model_prints():
    page = (Path(__file__).parents[1] / "docs" / "scale.md").read_text()
    constants = cluster_model.Constants.kept()
    rows = [*cluster_model.check_rows(constants)]
    assert len(rows) == 9
    for line in table([], rows).splitlines()[2:]:
        assert line in page
    first = next(cluster_model.scaling_rows("neighbours", constants))
    assert table([], [first]).splitlines()[2] in page
