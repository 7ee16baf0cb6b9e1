"""A short real training of the paper's method on the shipped sample learns to be robust."""

import torch

from methods.data.load import load
from methods.training.loop import train
from methods.training.registry import load_method
from methods.training.resume import Resume
from methods.training.validation import validate
from tests.specs import small


def test_robust_accuracy_on_training_images_is_far_above_chance(tmp_path):
    """120 steps of 32 images, a tenth of a random +-1 RN18 of a quarter of the width, at radius 2/255: chance is 10 %."""
    rewrite = {"width": 0.25, "data.train": 96, "train.epochs": 40, "train.batch": 32, "attack.steps": 2, "validate.steps": 10}
    spec = small("binary_subnet", arch="rn18", sparsity=0.9, rewrite=rewrite, eps="2/255")
    data = load("cifar10", source="sample", train=96, val=20)
    method = load_method("binary_subnet")(spec, data, device=torch.device("cpu"))
    untrained = validate(method, method.net, data.train, epoch=0)
    outcome = train(method, data, resume=Resume(tmp_path / "state", "x"), log=lambda _: None)
    trained = validate(method, method.net, data.train, epoch=0)
    assert outcome.history[-1]["train_loss"] < 0.8 * outcome.history[0]["train_loss"]
    assert untrained["val_robust"] <= 0.15
    assert trained["val_clean"] >= 0.5
    assert trained["val_robust"] >= 0.2
