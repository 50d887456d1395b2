"""`python -m kernelgym.leaderboard`: the same as `kernelgym leaderboard`."""

import sys

from kernelgym.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "leaderboard")
    main()
