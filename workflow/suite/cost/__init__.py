"""What a plan costs before it is run."""
