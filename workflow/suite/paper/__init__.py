"""The paper: its printed numbers, closed forms, claims and contradictions."""
