"""Attacks of training: PGD, and FGSM with transferred perturbations."""
