"""Attacks a server until standard input ends, then prints how its calls ended: `python -m load.floods.attacker drafts`.

It prints a line when it begins. It runs with a low priority, as if it used another machine's processors.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
from typing import Final

from load.floods.attacks import FLOODS, Attack

LOW_PRIORITY: Final = 10


async def _attack(name: str, target: str) -> None:
    attack = Attack(target)
    attacking = asyncio.create_task(_run(name, attack))
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    attacking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await attacking
    print(json.dumps(dict(attack.ends.most_common())), flush=True)


async def _run(name: str, attack: Attack) -> None:
    try:
        await FLOODS[name].run(attack)
    except Exception as error:  # noqa: BLE001 - a server that breaks under a flood is a result
        attack.ends[f"the attack ended: {type(error).__name__} {error}"[:100]] += 1


def main() -> None:
    """Attacks until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flood", choices=FLOODS)
    parser.add_argument("target", help="the address to attack")
    arguments = parser.parse_args()
    os.nice(LOW_PRIORITY)
    asyncio.run(_attack(arguments.flood, arguments.target))
    os._exit(0)  # 50,000 calls would take gRPC minutes to take down


if __name__ == "__main__":
    main()
