"""`python -m kernelgym.cli`: the `kernelgym` command of this very interpreter."""

from kernelgym.cli import main

main()
