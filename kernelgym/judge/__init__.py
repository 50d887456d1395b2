"""The judge: a workspace comes in, a verdict goes out."""
