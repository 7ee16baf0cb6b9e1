"""What the classes of the data sets are called, in the order of their numbers. ImageNet's are WordNet ids."""

from __future__ import annotations

from pathlib import Path

CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle caterpillar cattle
    chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house
    kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
    otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew
    skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout
    tulip turtle wardrobe whale willow_tree wolf woman worm
"""
WNIDS = Path(__file__).resolve().parents[1] / "data" / "imagenet100_wnids.txt"


def class_names(dataset: object, classes: int) -> list[str]:
    """A name for each of so many classes; plain numbers where the data set is unknown or has another number of classes."""
    texts = {"cifar10": lambda: CIFAR10, "cifar100": lambda: CIFAR100, "imagenet100": lambda: WNIDS.read_text(encoding="utf-8")}
    names = texts[dataset]().split() if isinstance(dataset, str) and dataset in texts else []
    return names if len(names) == classes else [f"class {number}" for number in range(classes)]
