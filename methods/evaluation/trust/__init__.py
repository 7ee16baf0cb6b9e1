"""The measured half of the trust panel (see `methods.core.trust`): further attacks on a few images, within a budget."""
