"""The paper's figures and two of our own, drawn from finished Runs without torch."""
