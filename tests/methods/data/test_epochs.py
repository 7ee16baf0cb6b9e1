"""Short epochs: parts of one shuffle, alike for every way to read them, and counted alike by all who count steps."""

from collections import Counter

import pytest
import torch

from methods.attacks.atta import Canvas
from methods.core.datasets import epoch_images, epoch_steps
from methods.data.load import load, load_of
from methods.data.split import Batch, TensorSplit, generator
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.registry import load_method
from methods.training.resume import Resume
from tests.specs import small
from workflow.suite.cost import work


def numbered(count):
    """A split whose image number i is grey level i."""
    images = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 8, 8)
    return TensorSplit(torch.arange(count), lambda: images.contiguous())


def seen(split, epoch, images, **options):
    return torch.cat([batch.index for batch in split.batches(batch=4, seed=3, epoch=epoch, images=images, **options)]).tolist()


def test_epochs_are_consecutive_parts_of_one_shuffle():
    split = numbered(30)
    shuffles = [torch.randperm(30, generator=generator(3, "order", number)).tolist() for number in (0, 1)]
    epochs = [seen(split, epoch, 10) for epoch in range(6)]
    assert sum(epochs[:3], []) == shuffles[0]
    assert sum(epochs[3:], []) == shuffles[1]


def test_every_image_is_seen_equally_often_where_epochs_divide_the_images():
    counts = Counter(index for epoch in range(12) for index in seen(numbered(30), epoch, 10))
    assert set(counts.values()) == {4}
    assert len(counts) == 30


def test_what_is_left_over_waits_for_the_next_shuffle():
    split = numbered(11)
    epochs = [seen(split, epoch, 4) for epoch in range(4)]
    assert [len(epoch) for epoch in epochs] == [4, 4, 4, 4]
    assert len({*epochs[0], *epochs[1]}) == 8
    assert len({*epochs[2], *epochs[3]}) == 8
    assert {*epochs[2], *epochs[3]} != {*epochs[0], *epochs[1]}


def test_an_epoch_of_all_images_is_the_plain_one():
    split = numbered(30)
    for epoch in (0, 1, 5):
        assert seen(split, epoch, 30) == seen(split, epoch, None)


def test_a_short_epoch_resumes_and_is_shared_out_bit_for_bit():
    train = load("cifar10", source="sample", train=100).train
    options = {"batch": 16, "seed": 7, "epoch": 3, "images": 40, "augment": "crop_flip"}
    whole = list(train.batches(**options))
    assert [len(batch.y) for batch in whole] == [16, 16, 8]
    for start in range(3):
        for resumed, batch in zip(train.batches(**options, start=start), whole[start:], strict=True):
            assert all(map(torch.equal, resumed, batch))
    shares = [list(train.batches(**options, share=(k, 3))) for k in range(3)]
    for parts, batch in zip(zip(*shares, strict=True), whole, strict=True):
        assert all(map(torch.equal, Batch(*map(torch.cat, zip(*parts, strict=True))), batch))


@pytest.mark.parametrize("images", [0, 31])
def test_an_impossible_epoch_is_refused(images):
    with pytest.raises(ValueError, match=f"images={images}; an epoch has at least one image and at most all 30"):
        numbered(30).batches(batch=4, images=images)


def test_steps_of_an_epoch():
    assert epoch_steps({"batch": 32}, 100) == 4
    assert epoch_steps({"batch": 32, "epoch_images": 33}, 100) == 2
    assert epoch_images({"epoch_images": 500}, 100) == 100


SPEC = small("flyingbird", arch="rn18", rewrite={"train.epochs": 4, "train.epoch_images": 40, "data.train": 96})
SPEC["options"]["update_every"] = [2, 2]


def trained(resume, stop=lambda: False):
    data = load_of(SPEC)
    method = load_method("flyingbird")(SPEC, data, device=torch.device("cpu"))
    return train(method, data, resume=resume, stop=stop, log=lambda _: None), method


def test_a_training_of_short_epochs_goes_on_where_it_was_stopped(tmp_path):
    """Stopped in the middle of the third epoch, the first of the second shuffle."""
    whole, method = trained(Resume(tmp_path / "whole", "x"))
    assert method.epoch_steps == 2
    assert [record["epoch"] for record in whole.history] == [0, 1, 2, 3]
    assert [record["updates"] for record in whole.history] == [1, 1, 1, 1]
    resume, answers = Resume(tmp_path / "cut", "x"), iter([False] * 4 + [True])
    with pytest.raises(Stopped, match="stopped at epoch 2, step 1"):
        trained(resume, stop=lambda: next(answers))
    resumed, again = trained(resume)
    assert resumed.history == whole.history
    for name, tensor in method.tensors().items():
        assert torch.equal(tensor, again.tensors()[name]), name


def test_an_epoch_is_averaged_over_its_own_images(tmp_path):
    """At the start every class is as likely as any other: a mean over 96 images of a sum over 40 would be less than half."""
    whole, _ = trained(Resume(tmp_path, "x"))
    assert whole.history[0]["train_loss"] == pytest.approx(2.5, abs=0.7)


def test_steps_of_a_method_follow_the_epochs_of_a_scale():
    """Topology updates keep their number: as many per training, with steps scaled from 383 x 200 to 2 x 4."""
    spec = small("flyingbird", arch="rn18", rewrite={"train.epochs": 4, "train.epoch_images": 40, "data.train": 96})
    assert spec["options"]["update_every"] == [max(1, round(n * 8 / (383 * 200))) for n in (900, 1200)]
    assert work.training(spec).flops < work.training({**spec, "train": {**spec["train"], "epoch_images": 96}}).flops


def test_a_pooled_canvas_stays_random_until_its_image_has_come():
    """Seven images in short epochs of three: six visits more than one pass may still have left one out."""
    draws = generator(0)
    canvas = Canvas(7, (3, 224, 224), 8 / 255, generator=draws)
    for index in ([0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]):
        canvas.write(torch.tensor(index), torch.zeros(3, 3, 232, 232))
    assert canvas.visited == 12
    assert canvas.read(torch.tensor([0]), draws).abs().max() == 0
    assert canvas.read(torch.tensor([6]), draws).abs().max() > 0
    canvas.write(torch.tensor([6, 0]), torch.zeros(2, 3, 232, 232))
    assert canvas.complete
    assert canvas.read(torch.tensor([6]), draws).abs().max() == 0
