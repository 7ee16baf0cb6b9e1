"""What the patch relies on in Snakemake's internals, and what it sees to at a start."""

import ast
import inspect
from types import SimpleNamespace

import pytest
from snakemake import api
from snakemake.executors import dryrun, local, touch
from snakemake.settings.types import DAGSettings
from snakemake.workflow import Workflow

from methods.core.errors import UserError
from workflow.suite.jobs import snakemake_patch

CHANGED = (
    "Snakemake's internals have changed: {what}. workflow/suite/jobs/snakemake_patch.py relies on that; read its head, bring it up to date,"
    " and run tests/cluster/faults"
)


def calls(function, name):
    """The calls of `something.<name>(...)` in the source of a function, in order."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [node for node in nodes if node.func.attr == name]


def test_snakemake_runs_through_execute():
    [call] = calls(api.DAGApi.execute_workflow, "execute") or [None]
    assert call is not None, CHANGED.format(what="DAGApi.execute_workflow no longer calls workflow.execute")
    assert ast.unparse(call.func) == "workflow.execute", CHANGED.format(what="it is called on something else")
    assert "executor_plugin" in {word.arg for word in call.keywords}, CHANGED.format(what="executor_plugin is not given by name")


def test_the_dag_is_built_inside_of_execute():
    """So that what is done before the call is seen by it."""
    assert calls(Workflow.execute, "_build_dag"), CHANGED.format(what="Workflow.execute no longer builds the DAG")
    assert not calls(api.DAGApi.execute_workflow, "_build_dag"), CHANGED.format(what="the DAG is built before Workflow.execute")


def test_dry_runs_can_be_told_from_real_ones():
    told = [(module.common_settings.dryrun_exec, module.common_settings.touch_exec) for module in (dryrun, touch, local)]
    assert told == [(True, False), (False, True), (False, False)], CHANGED.format(what="dryrun_exec and touch_exec mean something else")


def test_what_is_marked_can_be_made_again():
    assert "force_incomplete" in DAGSettings.__dataclass_fields__, CHANGED.format(what="DAGSettings.force_incomplete is gone")


def test_todays_workflow_object_is_as_the_patch_needs_it():
    workflow = SimpleNamespace(execute=Workflow.execute, dag_settings=DAGSettings(), is_main_process=True, rules=())
    assert list(snakemake_patch.relied_on(workflow)) == []
    assert isinstance(inspect.getattr_static(Workflow, "is_main_process"), property)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"execute": None}, "Workflow.execute is gone"),
        ({"execute": lambda plugin: None}, "Workflow.execute is not given executor_plugin"),
        ({"dag_settings": object()}, "Workflow.dag_settings.force_incomplete .* is gone"),
    ],
)
def test_another_snakemake_is_refused_with_what_has_changed(change, message):
    workflow = SimpleNamespace(**({"execute": Workflow.execute, "dag_settings": None, "is_main_process": True, "rules": ()} | change))
    with pytest.raises(UserError, match=f"snakemake_patch.py was written for: {message}.* Install the version of requirements.txt"):
        snakemake_patch.around(workflow, None, logger=None, failure=Exception)
