"""What somebody meant who mistyped a name."""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(word: str, names: Iterable[str]) -> str | None:
    """The name that is spelled much like the word, if there is one."""
    return next(iter(get_close_matches(word, list(names), n=1, cutoff=0.6)), None)


def hint(word: str, names: Iterable[str], form: str = "{}") -> str:
    """A part of a message, empty where no name is close; `form` is what the name is part of."""
    name = meant(word, names)
    return f"did you mean '{form.format(name)}'? " if name else ""
