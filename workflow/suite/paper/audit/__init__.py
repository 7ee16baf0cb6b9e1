"""Where the paper contradicts itself, found by program."""
