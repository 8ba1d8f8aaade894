"""Pools of random amounts: sharing a budget out, keeping what is left, drawing from it."""
