"""The paper's figures and some of our own, drawn from finished Runs without torch."""
