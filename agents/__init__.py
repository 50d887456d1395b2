"""Agents: one file each; anything that maps text to text can play."""
