"""Who may use the service: accounts by token, each with a budget of verdicts."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from kernelgym.errors import UsageError

__all__ = ["LOCAL", "Access", "Account", "is_loopback", "read_accounts"]

LOCAL = "local"
"""The account of all callers where no token is asked for."""

_LEAST_TOKEN = 16


@dataclasses.dataclass(frozen=True)
class Account:
    """One caller.

    Attributes:
        name: As the journal has it.
        budget: Verdicts that it may be given; None without a limit.
    """

    name: str
    budget: int | None = None


class Access:
    """Finds the account that a request belongs to.

    Args:
        accounts: (token, account) pairs; without any, every caller is `local`.
        budget: The budget of `local`.
    """

    def __init__(
        self, accounts: Sequence[tuple[str, Account]] = (), budget: int | None = None
    ) -> None:
        # Digests are of one length, so that comparing takes the same time for any token.
        self._accounts = tuple((_digest(token), account) for token, account in accounts)
        self._local = Account(LOCAL, budget)

    @property
    def open(self) -> bool:
        """Whether no token is asked for."""
        return not self._accounts

    def account(self, authorization: str | None) -> Account | None:
        """The account of an `Authorization` header's bearer token, or None."""
        if self.open:
            return self._local
        scheme, _, token = (authorization or "").partition(" ")
        given = _digest(token.strip() if scheme.lower() == "bearer" else "")
        found = None
        for digest, account in self._accounts:  # all of them, whichever it is
            if hmac.compare_digest(digest, given):
                found = account
        return found


def read_accounts(path: str | os.PathLike[str], budget: int | None = None) -> Access:
    """Reads a file of accounts: `NAME TOKEN [BUDGET]` a line; `#` begins a comment.

    Args:
        path: The file.
        budget: Of accounts whose line has none.

    Raises:
        UsageError: The file cannot be read, a line is something else, a token is shorter than 16
            characters, a name or a token comes twice, or there is no account.
    """
    accounts: list[tuple[str, Account]] = []
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expected a file of accounts, got {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
            raise UsageError(f"{path}:{number}: expected NAME TOKEN [BUDGET]")
        name, token = words[:2]
        if len(token) < _LEAST_TOKEN:
            raise UsageError(
                f"{path}:{number}: expected a token of at least {_LEAST_TOKEN} characters"
            )
        if any(name == account.name or token == known for known, account in accounts):
            raise UsageError(f"{path}:{number}: expected a name and a token of its own")
        accounts.append((token, Account(name, int(words[2]) if len(words) == 3 else budget)))
    if not accounts:
        raise UsageError(f"{path}: expected at least one line of NAME TOKEN [BUDGET], got none")
    return Access(accounts)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
