"""The work ahead: jobs by their seconds, cells by the jobs that they wait for."""

from methods.core import paths
from workflow.suite.cost import devices
from workflow.suite.jobs import forecast
from workflow.suite.jobs.forecast import Job
from workflow.suite.planning import plan


def test_the_forecast_weighs_jobs_by_their_work_and_knows_the_cells(tmp_path):
    demo = plan.load("demo", data_root=tmp_path)
    device = devices.named("cpu")
    run = demo.final_runs("comparison_rn18_rn50", "rst")[0]
    result = paths.evaluation(run, demo.evaluations[run].id)
    jobs = [
        Job(number=0, rule="train", wildcards={"run": run}, outputs=(paths.model(run),), needed=True),
        Job(number=1, rule="evaluate", wildcards={"run": run}, outputs=(result,), needed=True),
        Job(number=2, rule="row", wildcards={}, outputs=("reports/demo/rows/x.md",), needed=True),
        Job(number=3, rule="data", wildcards={}, outputs=("results/data/x.json",), needed=False),
    ]
    ahead = forecast.of(demo, device, jobs)
    assert set(ahead.seconds) == {0, 1, 2}
    assert ahead.seconds[0] > ahead.seconds[1] > ahead.seconds[2] == forecast.SMALL
    users = sum(cell.runs == (run,) or list(cell.runs) == [run] for cell in demo.cells.values())
    assert ahead.cells == (frozenset({1}),) * users
    assert forecast.computes(jobs)
    assert not forecast.computes(jobs[2:])
    assert forecast.lowered(demo, jobs) == 0
    assert forecast.of(demo, device, [Job(**{**vars(job), "needed": False}) for job in jobs]).cells == (frozenset(),) * users


def test_trainings_in_bfloat16_are_those_that_have_to_run(tmp_path):
    lite = plan.load("lite", data_root=tmp_path)
    runs = sorted(lite.final_runs("bf16_equivalence", "at"))
    jobs = [Job(number=i, rule="train", wildcards={"run": run}, outputs=(), needed=True) for i, run in enumerate(runs)]
    assert len(runs) == 2
    assert forecast.lowered(lite, jobs) == 1
    assert forecast.lowered(lite, [Job(**{**vars(job), "needed": False}) for job in jobs]) == 0
    assert forecast.lowered(lite, [Job(**{**vars(job), "rule": "evaluate"}) for job in jobs]) == 0
