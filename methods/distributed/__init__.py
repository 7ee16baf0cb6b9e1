"""One run on several devices."""
