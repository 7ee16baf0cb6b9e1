"""The error a person can act on: commands print it as one line and exit with code 2."""


class UserError(Exception):
    """Something in the user's files, options or environment is wrong; the message says what, where and what to do."""
