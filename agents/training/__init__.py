"""Training of the small policy: scripts, tokens, the network, and the stages that train it.

`python -m kernelgym.agents.training STAGE --config FILE` runs them; see `docs/training.md`.
"""
