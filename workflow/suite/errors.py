"""The one error a user of the suite is meant to see."""


class SuiteError(Exception):
    """Wrong input: the message says which file and key, what is allowed, and what to do."""
