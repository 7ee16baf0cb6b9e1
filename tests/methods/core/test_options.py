"""Options of a method are those that its RECIPE mentions, of the same kinds."""

import pytest

from methods.core.errors import UserError
from methods.core.options import options_model
from methods.core.run_check import check_method

RECIPE = {
    "run": {"options": {"beta": 6.0, "plus": False, "every": [900, 1200], "quantiser": {"bits": 1}}},
    "when": [[{"options.source": ["a", "b"]}, {"options.beta": None, "options": {"quantiser": {"mask": "all"}}}]],
    "phases": {"one": {}, "two": {"run": {"options": {"hands_over": "last"}}}},
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beta": 6},
        {"plus": True, "every": [1, 2], "source": "c", "hands_over": "best"},
        {"quantiser": {"bits": 2, "mask": "none"}},
    ],
)
def test_options_are_what_a_recipe_mentions(options):
    check_method({"options": options}, options_model(RECIPE), ())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_such": 1}, "options: unknown key 'no_such'; allowed: beta, every, hands_over, plus, quantiser, source"),
        ({"quantiser": {"bitz": 1}}, "options.quantiser: unknown key 'bitz'; allowed: bits, mask"),
        ({"beta": "six"}, "options.beta: 'six' is not allowed; allowed: a number"),
        ({"beta": True}, "options.beta: True is not allowed; allowed: a number"),
        ({"plus": 1}, "options.plus: 1 is not allowed; allowed: true or false"),
        ({"quantiser": 1}, "options.quantiser: 1 is not allowed; allowed: a mapping of bits, mask"),
        ({"every": 900}, "options.every: 900 is not allowed; allowed: a list"),
    ],
)
def test_a_recipe_closes_the_options(options, message):
    with pytest.raises(UserError, match=f"^--spec: {message}$"):
        check_method({"options": options}, options_model(RECIPE), (), source="--spec")


def test_a_method_without_options_takes_none():
    with pytest.raises(UserError, match="options: unknown key 'x'; allowed: none"):
        check_method({"options": {"x": 1}}, options_model({"run": {}}), ())
