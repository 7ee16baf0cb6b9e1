"""Security curves as a figure: of the Runs that have one, and of no others."""

from pathlib import Path

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.figures import catalogue, security, style
from workflow.suite.planning import plan

ADDRESSES = ("main_comparison.ours.cifar10-binary", "main_comparison.at.cifar10-fp")
CURVES = {
    "Linf": {"radii": ["2/255", "4/255", "8/255"], "accuracy": [0.5, 0.4, 0.25], "clean_acc": 0.75},
    "L2": {"radii": ["0.25", "0.5"], "accuracy": [0.45, 0.3], "clean_acc": 0.75},
}


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def folder(demo, tmp_path):
    """Ours has a curve in both norms, adversarial training in one."""
    for address, norms in zip(ADDRESSES, (("Linf", "L2"), ("Linf",)), strict=True):
        for norm in norms:
            write(demo, tmp_path, address, norm)
    return tmp_path


def write(demo, folder, address, norm, /, **changes):
    path = folder / paths.security_curve(demo.cells[address].runs[0], norm)
    path.parent.mkdir(parents=True, exist_ok=True)
    sealed.write(path, {**CURVES[norm], "n": 40, "norm": norm, **changes})


def drawn(demo, folder):
    with style.look():
        return security.draw(demo, folder, "A title", "A foot.")


def test_a_line_per_run_that_has_a_curve(demo, folder):
    picture = drawn(demo, folder)
    linf, l2 = picture.figure.axes
    lines = [line for line in linf.lines if line.get_linestyle() == "-"]
    (ours,) = [line for line in lines if line.get_color() == style.OURS]
    assert len(lines) == 2
    assert [float(x) for x in ours.get_xdata()] == pytest.approx([0, 2, 4, 8])
    assert [float(y) for y in ours.get_ydata()] == [0.75, 0.5, 0.4, 0.25]
    assert [float(x) for x in l2.lines[0].get_xdata()] == pytest.approx([0, 0.25, 0.5])
    assert len(l2.lines) == 1
    (trained,) = [line for line in linf.lines if line.get_linestyle() == "--"]
    assert trained.get_xdata()[0] == pytest.approx(8)
    assert "Ours, RN34-LBN, binary, r = 0.99, CIFAR10, seed 1234 (40 images): clean 75.0%, 2/255 50.0%" in picture.description


def test_it_needs_what_is_there(demo, folder, tmp_path):
    figure = catalogue.find("security_curves")
    runs = [demo.cells[address].runs[0] for address in ADDRESSES]
    wanted = {paths.security_curve(runs[0], "Linf"), paths.security_curve(runs[0], "L2"), paths.security_curve(runs[1], "Linf")}
    assert set(figure.inputs(demo, folder)) == wanted
    assert "security_curves" in catalogue.available(demo, folder)
    written = catalogue.write(demo, "security_curves", folder)
    assert [path.suffix for path in written] == [".png", ".pdf"]
    empty = tmp_path / "empty"
    assert "security_curves" not in catalogue.available(demo, empty)
    with pytest.raises(UserError, match=r"no curve is measured; `snakemake --cores 1 results/runs/RUN/eval/curve\.Linf\.json`"):
        catalogue.write(demo, "security_curves", empty)


def test_a_file_under_a_wrong_name_is_refused(demo, tmp_path):
    write(demo, tmp_path, ADDRESSES[0], "Linf", norm="L2")
    with pytest.raises(UserError, match=r"curve\.Linf\.json: is a curve in L2, its name says Linf"):
        drawn(demo, tmp_path)
    path = tmp_path / paths.security_curve(demo.cells[ADDRESSES[0]].runs[0], "Linf")
    sealed.write(path, {"norm": "Linf"})
    with pytest.raises(UserError, match=r"curve\.Linf\.json: misses radii, accuracy"):
        drawn(demo, tmp_path)
