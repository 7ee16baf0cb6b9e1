"""What both sides of the suite must agree on, without torch: values, file names, facts of data sets and networks."""
