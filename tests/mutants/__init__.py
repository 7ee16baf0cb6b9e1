"""Small faults, one at a time, that the tests must notice: `python -m tests.mutants`, outside of the ordinary tests."""
