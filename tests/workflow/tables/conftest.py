"""A real TeX."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def pdflatex():
    program = shutil.which("pdflatex")
    packages = ("booktabs.sty", "siunitx.sty")
    # kpsewhich fails where one of the files is missing.
    if program is None or subprocess.run(["kpsewhich", *packages], capture_output=True).returncode:
        message = (
            "pdflatex or siunitx is not installed (Debian: apt-get install texlive-latex-base texlive-latex-recommended texlive-science)"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return program
