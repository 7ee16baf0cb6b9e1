"""The commands of `python -m workflow.suite`: a module per kind, each with a function `add` that registers its own."""
