"""Networks, their initial weights, their files, and networks that others trained."""
