"""Where a process computes, how far it is, what it is: nothing here changes a number."""
