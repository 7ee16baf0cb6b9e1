"""Which weights a network keeps, and how trained tensors become weights."""
