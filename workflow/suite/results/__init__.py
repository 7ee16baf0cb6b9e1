"""What was measured, how sure it is, and where each Run stands."""
