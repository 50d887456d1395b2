"""The leaderboard's pages: `build_site` writes them, `serve_site` shows them on this machine."""

from kernelgym.leaderboard.site.build import Built, build_site
from kernelgym.leaderboard.site.serve import serve_site

__all__ = ["Built", "build_site", "serve_site"]
