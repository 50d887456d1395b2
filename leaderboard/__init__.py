"""The leaderboard: submit, verify, build."""
