"""Attacks a server until standard input ends, then prints how its calls ended: `python -m load.floods.attacker drafts`.

It prints a line when it begins. It runs with a low priority, as if it used another machine's processors.
"""

import argparse
import asyncio
import json
import os
import sys
from typing import Final

from load.floods.attack import Attack
from load.floods.attacks import FLOODS

LOW_PRIORITY: Final = 10


async def _attack(name: str, target: str, validation: str) -> None:
    """Attacks; prints the number of calls by outcome, notes, and the error that ended the attack early, if any."""
    flood, attack = FLOODS[name], Attack(target, validation)
    attacking = asyncio.ensure_future(flood.run(attack))
    if flood.prepares:
        begun = asyncio.ensure_future(attack.begun.wait())
        await asyncio.wait((attacking, begun), return_when=asyncio.FIRST_COMPLETED)
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    error = repr(attacking.exception())[:200] if attacking.done() else ""
    found = {"ends": dict(attack.ends.most_common()), "notes": attack.notes, "error": error}
    print(json.dumps(found), flush=True)
    os._exit(0)  # 50,000 calls would take gRPC minutes to take down


def main() -> None:
    """Attacks until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flood", choices=FLOODS)
    parser.add_argument("target", help="the address to attack")
    parser.add_argument("validation", help="the server's address for ValidationService")
    arguments = parser.parse_args()
    os.nice(LOW_PRIORITY)
    asyncio.run(_attack(arguments.flood, arguments.target, arguments.validation))


if __name__ == "__main__":
    main()
