"""A Run with every key that it must have."""

PGD = {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}
RUN = {
    "method": "hydra",
    "version": 1,
    "dataset": "cifar10",
    "data": {"source": "full"},
    "arch": "rn34",
    "lbn": False,
    "bn_affine": True,
    "normalize": True,
    "head_bias": False,
    "precision": "fp",
    "eps": "8/255",
    "attack": PGD,
    "validate": {"steps": 10, "step": 0.25},
    "train": {"optimizer": "adam", "lr": 0.1, "weight_decay": 5e-4, "schedule": "cosine", "epochs": 4, "batch": 5},
    "seed": 1234,
}
