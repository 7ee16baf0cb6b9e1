"""The contract of a method, and the loop that trains any of them."""
