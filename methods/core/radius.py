"""The size of an attack, as a Run and an evaluation write it."""


def radius(text: str | int | float) -> float:
    """'8/255' or a number, as a float."""
    top, _, bottom = str(text).partition("/")
    return float(top) / float(bottom or 1)
