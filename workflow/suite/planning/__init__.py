"""From tables, recipes and a scale to the Runs behind every cell."""
