"""Faults of the training loop, its schedules and what it publishes."""

from __future__ import annotations

from tests.mutants.mutant import in_file

WHOLE = "tests/methods/training/test_whole.py"
EQUAL = f"{WHOLE}::test_a_whole_training_is_that_of_a_plain_loop"
TIES = f"{WHOLE}::test_of_equally_robust_epochs_the_first_is_deployed"
OPTIM = "tests/methods/training/test_optim.py"
DECLARED = "tests/methods/training/test_declared.py"


def case(name: str) -> str:
    return f"{EQUAL}[{name}]"


SUBNET, AT, QUANTISED = case("binary_subnet-binary-pgd"), case("at-fp-pgd"), case("atmc-quantised-binary-pgd")
loop = in_file("methods/training/loop.py", SUBNET)
step = in_file("methods/training/step.py", SUBNET)
course = in_file("methods/training/course.py", SUBNET)
outcome = in_file("methods/training/outcome.py", TIES)
validation = in_file("methods/training/validation.py", SUBNET)
optim = in_file("methods/training/optim.py", OPTIM)
losses = in_file("methods/training/losses.py", "tests/methods/training/test_losses.py")
declared = in_file("methods/training/declared.py", DECLARED)
method = in_file("methods/training/method.py", SUBNET)
publish = in_file("methods/training/publish.py", DECLARED)

MUTANTS = (
    loop(
        "rate-constant", 'group["lr"] = learning_rate(method.spec["train"], epoch)', 'group["lr"] = learning_rate(method.spec["train"], 0)'
    ),
    loop(
        "validates-the-trained-network",
        "validate(method, method.validated(), data.val, epoch, world)\n        method.after",
        "validate(method, method.net, data.val, epoch, world)\n        method.after",
        QUANTISED,
    ),
    loop("validates-on-training-images", "method.validated(), data.val, epoch, world", "method.validated(), data.train, epoch, world"),
    loop("after-epoch-forgotten", "        method.after_epoch(record)\n", "", case("bcs-fp-pgd")),
    loop("same-shuffle-every-epoch", "        epoch=epoch,\n", "        epoch=0,\n"),
    loop("never-augmented", "augment=method.augment", 'augment="none"'),
    loop("end-forgotten", "    course.outcome.end(method)\n", "", TIES),
    step("validation-in-train-mode", "with mode(net, training), computed_in", "with mode(net, True), computed_in"),
    step("training-in-eval-mode", "with mode(net, training), computed_in", "with mode(net, False), computed_in"),
    step("same-draws-every-epoch", 'method.draws("step", epoch, number, device', 'method.draws("step", 0, number, device'),
    step("same-draws-every-step", 'method.draws("step", epoch, number, device', 'method.draws("step", epoch, 0, device'),
    step("gradients-pile-up", "    method.optimizer.zero_grad(set_to_none=True)\n", ""),
    step("weights-not-made", "    method.push()\n", ""),
    step(
        "steps-counted-from-zero",
        "epoch * method.epoch_steps + number + 1, draws",
        "epoch * method.epoch_steps + number, draws",
        case("plus"),
    ),
    course(
        "divergence-unnoticed",
        'if not math.isfinite(record["train_loss"]):',
        'if math.isnan(record["lr"]):',
        f"{WHOLE}::test_a_loss_that_is_no_number_ends_the_training",
    ),
    course("sums-not-cleared", "self.epoch + 1, 0, {}", "self.epoch + 1, 0, self.sums"),
    course("mean-over-batches", "(total / self.method.epoch_images)", "(total / self.method.epoch_steps)"),
    course(
        "resumed-one-step-late",
        'self.epoch, self.step = state["epoch"], state["step"]',
        'self.epoch, self.step = state["epoch"], state["step"] + 1',
        "tests/baselines/test_contract.py::test_interrupted_and_resumed_is_identical[at-fp-pgd]",
    ),
    outcome("ties-take-the-last", "not record[selects] > self", "record[selects] < self"),
    outcome("best-is-the-last", 'not record[selects] > self.history[self.best["epoch"]][selects]', "record[selects] < 0"),
    outcome("best-is-the-cleanest", "selects = f\"val_{method.spec['validate'].get('by', 'robust')}\"", 'selects = "val_clean"'),
    outcome(
        "best-is-always-the-most-robust",
        "selects = f\"val_{method.spec['validate'].get('by', 'robust')}\"",
        'selects = "val_robust"',
        f"{WHOLE}::test_a_run_may_select_by_clean_accuracy",
    ),
    outcome("hands-over-the-last-for-the-best", 'if method.hands_over == "last":', "if method.hands_over:"),
    outcome("hands-over-nothing-for-the-last", 'if method.hands_over == "last":', 'if method.hands_over == "end":'),
    outcome("hands-over-nothing-for-the-best", 'if method.hands_over == "best":', 'if method.hands_over == "top":'),
    outcome("deploys-the-trained-network", "copied(method.validated().state_dict())", "copied(method.net.state_dict())", QUANTISED),
    outcome("keeps-a-view-of-the-best", 't.detach().to("cpu", copy=True)', 't.detach().to("cpu")'),
    validation("draw-fixed-over-epochs", 'method.draws("validate", epoch, i, device', 'method.draws("validate", 0, i, device'),
    validation("draw-fixed-over-batches", 'method.draws("validate", epoch, i, device', 'method.draws("validate", epoch, 0, device'),
    validation("validation-takes-the-last-point", '"pick", "worst"', '"pick", "last"'),
    validation("validation-starts-at-the-image", '"start", "uniform"', '"start", "none"'),
    validation("robust-of-clean-images", "logits = net(adv) if eps else clean", "logits = net(x) if eps else clean"),
    optim("milestone-one-epoch-late", "epoch >= milestone", "epoch > milestone"),
    optim("warm-up-from-zero", "lr * (epoch + 1) / warmup", "lr * epoch / warmup"),
    optim("cosine-ignores-warm-up", "(epoch - warmup) / (epochs - warmup)", "epoch / epochs"),
    optim("hydras-cosine-not-off-by-one", "(epoch - 1) / max(epochs, 2)", "epoch / max(epochs, 2)"),
    optim("decay-not-scheduled", 'group["weight_decay"] * group["lr"] / group["base_lr"]', 'group["weight_decay"]'),
    optim("velocity-of-the-wrong-sign", "add_(p.grad, alpha=-group", "add_(p.grad, alpha=group"),
    losses(
        "divergence-of-the-other-order",
        "F.kl_div(F.log_softmax(adversarial, 1), F.log_softmax(clean, 1)",
        "F.kl_div(F.log_softmax(clean, 1), F.log_softmax(adversarial, 1)",
    ),
    losses("divergence-not-a-mean", "return ce + beta / images * kl", "return ce + beta * kl"),
    losses(
        "halves-of-the-loss-swapped",
        "loss = w_clean * clean_loss + (1 - w_clean) * loss",
        "loss = (1 - w_clean) * clean_loss + w_clean * loss",
        "tests/methods/pruning/test_compression.py",
    ),
    losses("statistics-not-put-back", "statistic.data.copy_(before)", "statistic.data.copy_(statistic)"),
    declared("anything-is-binary", "    if actual == declared:\n        return\n", "    if declared:\n        return\n"),
    declared(
        "signs-may-be-called-fp", '    actual = "fp" if odd else "binary"\n', '    actual = "fp" if odd or declared == "fp" else "binary"\n'
    ),
    declared("counts-may-exceed", "<= actual[name] <= declared[name]", "<= actual[name]"),
    declared("binary-counts-may-fall-short", 'slack = 0 if spec.get("precision") == "binary" else', "slack ="),
    publish("published-unchecked", '    method.check_declared(best["tensors"], best["report"])\n', ""),
    method(
        "precision-unchecked-at-the-start",
        "        declared.check_precision(self.spec, weights)\n        self.declared_counts(",
        "        self.declared_counts(",
        f"{DECLARED}::test_a_false_declaration_ends_the_run_before_it_trains",
    ),
    method(
        "attack-in-eval-mode",
        'with mode(self.net, settings["bn"] == "train"):',
        "with mode(self.net, False):",
        "tests/golden/test_method.py",
    ),
    method(
        "step-of-the-attack-ignored",
        'alpha=settings["step"] * self.eps,\n                steps',
        "alpha=self.eps,\n                steps",
        "tests/golden/test_method.py",
    ),
)
