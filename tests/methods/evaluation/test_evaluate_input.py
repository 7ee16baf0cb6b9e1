"""Networks, images and labels that cannot be evaluated are refused with a reason."""

from __future__ import annotations

import pytest
import torch

from methods.core.errors import UserError
from methods.evaluate import evaluate
from tests.methods.evaluation.nets import images, trained

pytestmark = pytest.mark.usefixtures("network")


def test_nan_logits_bad_labels_and_bad_images():
    class Nan(torch.nn.Module):
        def forward(self, x):
            logits = trained()(x).clone()
            logits[3, 2] = torch.nan
            return logits

    x, y = images(20)
    quick = {"attack": "clean", "eps": 0, "block": 10}
    with pytest.raises(UserError, match=r"logits are not finite \(row 3"):
        evaluate(Nan(), x, y, spec=quick)
    for label in (10, -1):
        wrong = y.clone()
        wrong[7] = label
        with pytest.raises(UserError, match=rf"y\[7\] = {label} is out of range: the network has 10 classes"):
            evaluate(trained(), x, wrong, spec=quick)
    shifted = x.clone()
    shifted[15] -= 2
    with pytest.raises(UserError, match=r"x\[15\] has values outside of \[0, 1\]"):
        evaluate(trained(), shifted, y, spec=quick)
    with pytest.raises(UserError, match="one per image"):
        evaluate(trained(), x, y[:5], spec=quick)
    with pytest.raises(UserError, match="must be floats of shape"):
        evaluate(trained(), x[0], y, spec=quick)
    with pytest.raises(UserError, match=r"logits of shape \(10, 512"):
        evaluate(torch.nn.Conv2d(3, 512, 3), x, y, spec=quick)
    with pytest.raises(UserError, match="at most 3 targets"):
        evaluate(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 4)), x, y % 4, spec={"attack": "standard", "block": 10})
