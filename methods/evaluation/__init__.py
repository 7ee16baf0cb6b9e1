"""Accuracy of a network on clean and on attacked images, by AutoAttack."""
