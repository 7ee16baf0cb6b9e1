"""A real TeX."""

import os
import shutil

import pytest


@pytest.fixture
def pdflatex():
    found = shutil.which("pdflatex")
    if found is None:
        message = "pdflatex is not installed (Debian: apt-get install texlive-latex-base texlive-latex-recommended)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found
