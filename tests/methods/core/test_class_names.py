"""Names of classes: as many as there are classes, in the order of the data sets' own numbers."""

from methods.core.class_names import class_names
from methods.core.datasets import DATASETS


def test_every_class_has_a_name_of_its_own():
    for dataset, facts in DATASETS.items():
        assert len(set(class_names(dataset, facts.classes))) == facts.classes


def test_some_names():
    assert class_names("cifar10", 10)[3] == "cat"
    assert class_names("cifar100", 100)[0] == "apple"
    assert class_names("cifar100", 100) == sorted(class_names("cifar100", 100))
    assert class_names("imagenet100", 100)[0] == "n01440764"


def test_numbers_where_nothing_is_known():
    for dataset in (None, "mnist", ["cifar10"], "cifar10"):
        assert class_names(dataset, 2) == ["class 0", "class 1"]
