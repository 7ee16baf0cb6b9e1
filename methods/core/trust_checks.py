"""The checks of the trust panel: what each asks, when it warns and fails, and who proposed it. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.02  # a further attack may lower the robust accuracy by so much, as the sample shows it, before the number is called wrong
SQUARE_MARGIN = 0.002  # the library warns where Square takes more than this share of the images after the other attacks
FEW = 0.05  # share of images that may be odd (without a gradient, robust at a large radius) before it is called a failure
LEAST_SUCCESS = 0.95  # share of planted adversarial images that an attack has to find
POOR_SUCCESS = 0.8  # below this share it does not find them
GRAVE = ("randomized", "dynamic")  # warnings of the library that put the whole evaluation in question
GRADIENT_FREE = "square"

CROCE = "Croce and Hein, ICML 2020 (arXiv:2003.01690)"
CARLINI = "Carlini et al. 2019, On evaluating adversarial robustness (arXiv:1902.06705)"
ATHALYE = "Athalye, Carlini and Wagner, ICML 2018"
GUPTA = "Gupta and Ajanthan 2021 (arXiv:2003.13511)"
ZIMMERMANN = "Zimmermann et al., NeurIPS 2022"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A check of the panel: what it asks, what its number is, when it warns and fails, and who proposed it."""

    question: str
    number: str
    margin: str
    citation: str
    share: bool = True  # whether the number is one

    def shown(self, number: float | None) -> str:
        """The number for a reader."""
        return "" if number is None else f"{100 * number:.2f} %" if self.share else f"{number:g}"


FURTHER = f"warns where it breaks any image, fails above {100 * MARGIN:g} points"


CHECKS = {
    "attacks": Definition(
        question="Did attacks of several kinds agree?",
        number="robust accuracy after all attacks",
        margin="warns where only the cross-entropy was attacked",
        citation=CROCE,
    ),
    "warnings": Definition(
        question="Did AutoAttack itself have doubts?",
        number="kinds of warnings",
        margin=f"warns at any, fails at {' or '.join(GRAVE)}",
        citation=CROCE,
        share=False,
    ),
    "square": Definition(
        question="Does an attack without gradients break what gradients did not?",
        number="robust accuracy that it took",
        margin=f"warns above {100 * SQUARE_MARGIN:g} points of all images, fails above {100 * MARGIN:g}",
        citation=CROCE,
    ),
    "randomness": Definition(
        question="Does the network answer twice alike?",
        number="share of images whose logits changed",
        margin="fails at any",
        citation=ATHALYE,
    ),
    "gradients": Definition(
        question="Has the loss a gradient with respect to the image?",
        number="share of images without one",
        margin=f"warns at any, fails above {FEW:.0%} (of the cross-entropy: where nothing else was attacked)",
        citation=CARLINI,
    ),
    "temperature": Definition(
        question="Does APGD break more when logits are divided by their spread?",
        number="robust accuracy that it took",
        margin=FURTHER,
        citation=GUPTA,
    ),
    "iterations": Definition(
        question="Do twice the iterations from other starts break more?",
        number="robust accuracy that they took",
        margin=FURTHER,
        citation=CARLINI,
    ),
    "large_radius": Definition(
        question="Does nothing withstand a radius of 0.5?",
        number="share of images that withstand it",
        margin=f"warns at any, fails above {FEW:.0%}",
        citation=CARLINI,
    ),
    "binarisation": Definition(
        question="Does the attack find adversarial images that were planted?",
        number="share of them that it found",
        margin=f"warns below {LEAST_SUCCESS:.0%}, fails below {POOR_SUCCESS:.0%}",
        citation=ZIMMERMANN,
    ),
}
