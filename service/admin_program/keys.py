"""`rummikub-admin keys`: makes a key for the keys file, or one that signs join tickets."""

import argparse
from typing import Final

from service.admin_program.command import AdminError
from service.runtime.join_tickets import new_ticket_key
from service.runtime.keys import NAME_FORM, NAME_RULE, digest_of, new_key
from service.runtime.process import write_stdout

NAME: Final = "keys"
HELP: Final = "Makes keys for RUMMIKUB_KEYS_FILE."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument(
        "action",
        choices=["new", "ticket"],
        help="new: prints a new random key, and its entry for the file; ticket: a key that signs join tickets",
    )
    parser.add_argument("name", help="the name of the key, which its games carry")


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    name = str(arguments.name)
    if not NAME_FORM.fullmatch(name):
        raise AdminError(f"{name}: {NAME_RULE}")
    if arguments.action == "ticket":
        private, public = new_ticket_key()
        write_stdout(
            f"private key, for the back end only; it is shown once:\n{private}\n"
            f'line for the entry [keys.{name}] in RUMMIKUB_KEYS_FILE:\nticket_keys = ["{public}"]\n'
        )
        return 0
    key = new_key()
    write_stdout(
        f"key, for the front end only; it is shown once:\n  {key}\n\n"
        f'entry, for RUMMIKUB_KEYS_FILE:\n[keys.{name}]\nsha256 = ["{digest_of(key).hex()}"]\n'
    )
    return 0
