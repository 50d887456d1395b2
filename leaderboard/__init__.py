"""The leaderboard: from results to entries, from entries to scores and ranks, and to pages.

====================  ==========================================================================
module                what it is about
====================  ==========================================================================
`board`               what must be equal for two results to share a table
`entry`               the records of an entry; `loading` reads them, `writing_entries` writes them
`scores`, `ranking`   what an entry comes to, and who comes before whom
`checks`              what is wrong with an entry, without judging anything
`submission`          results in, an entry out, or nothing; `imports` knows their forms
`verification`        every solution judged again; `replay` compares
`summaries`           entries in short, kept by content
`reference_rows`      PyTorch's own rows;  `reported`: what others have published
====================  ==========================================================================
"""
