"""The scientific library of the suite: data, models, attacks, training and evaluation, and the paper's own method."""
