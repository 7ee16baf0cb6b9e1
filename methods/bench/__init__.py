"""Speed, measured by turns against a stated alternative."""
