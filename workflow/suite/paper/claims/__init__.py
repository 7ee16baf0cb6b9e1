"""The paper's checkable claims as predicates: run on the paper's own numbers, and on ours."""
