"""Deals a round: the starter, the indicator or the trump, the racks and the pool."""

from itertools import chain, islice

from engine.deal import ImpossibleDealError, Shuffle, by_chance
from engine.discard.events import HandsDealt
from engine.discard.game import round_of, rules_of
from engine.game import Game, RoundEnd
from engine.seats import Rack, from_seat
from engine.tiles import FALSE_JOKER, Tile, in_order


def deal(game: Game, shuffle: Shuffle | HandsDealt) -> HandsDealt:
    """Returns the deal of the next round.

    The first starter is drawn by lot. Later ones follow in turn order, as the dealer's place does.

    Args:
        game: The game.
        shuffle: The shuffles, or the deal itself if it was made before (record.py).

    Raises:
        ValueError: The shuffle is not of the tile set.
        ImpossibleDealError: The rules cannot have made the deal.
    """
    tiles = rules_of(game).tiles(len(game.active_seats))
    if isinstance(shuffle, HandsDealt):
        _check_deal(game, shuffle, tiles)
        return shuffle
    if in_order(shuffle.start_draw) != tiles or in_order(shuffle.deal) != tiles:
        raise ValueError("a shuffle must contain exactly the tiles of the tile set")
    starter = _next_starter(game)
    order = _order(game, by_chance(game.active_seats, shuffle.start_draw)[0] if starter is None else starter)
    indicator, rest = _turned(shuffle) if rules_of(game).has_indicator else (None, shuffle.deal)
    left = iter(rest)
    trump = next(left) if rules_of(game).trump else None
    racks = {seat: Rack(seat, in_order(islice(left, size))) for seat, size in _sizes(game, order).items()}
    dealt = tuple(racks[seat] for seat in game.active_seats)
    return HandsDealt(len(game.results) + 1, order, indicator, dealt, tuple(left), trump, shuffle.seed)


def _turned(shuffle: Shuffle) -> tuple[Tile, tuple[Tile, ...]]:
    """Returns the indicator, which is no false joker, and the other tiles in random order.

    To take the first tile of the deal that can be one would give the place of a false joker before it away. So the
    other shuffle decides on the face, and on which of its two copies leaves the deal.
    """
    others = (t for t in reversed(shuffle.start_draw) if t != FALSE_JOKER)
    indicator, one, other = islice(dict.fromkeys(others), 3)
    places = [place for place, t in enumerate(shuffle.deal) if t == indicator]
    place = places[one < other]
    return indicator, (*shuffle.deal[:place], *shuffle.deal[place + 1 :])


def _sizes(game: Game, order: tuple[int, ...]) -> dict[int, int]:
    """Returns how many tiles each seat is dealt (hand_size): with an indicator the starter one more (wild_tiles)."""
    rules = rules_of(game)
    return {seat: rules.hand_size + (rules.has_indicator and seat == order[0]) for seat in order}


def _next_starter(game: Game) -> int | None:
    """Returns the starter of a later round: the next player who has not resigned; after a void round the same one."""
    if not game.results:
        return None
    order = round_of(game).order
    if game.results[-1].end is not RoundEnd.VOID:
        order = order[1:] + order[:1]
    return next(seat for seat in order if seat in game.active_seats)


def _order(game: Game, starter: int) -> tuple[int, ...]:
    """Returns the turn order: counterclockwise, so that the player to the right of another one follows."""
    return from_seat(game.active_seats[::-1], starter)


def _check_deal(game: Game, dealt: HandsDealt, tiles: tuple[Tile, ...]) -> None:
    """Raises ImpossibleDealError if the rules cannot have dealt a round of these tiles like this."""
    seats, rules = game.active_seats, rules_of(game)
    face_up = tuple(t for t in (dealt.indicator, dealt.trump) if t is not None)
    held = tuple(chain.from_iterable(rack.tiles for rack in dealt.racks))
    starter, sizes = _next_starter(game), _sizes(game, dealt.order)
    for holds, problem in (
        (dealt.number == len(game.results) + 1, f"round {dealt.number} does not follow round {len(game.results)}"),
        (tuple(rack.seat for rack in dealt.racks) == seats, f"expected racks of the seats {seats}"),
        (tuple(sorted(dealt.order)) == seats, f"the turn order is not of the seats {seats}"),
        ((dealt.indicator is not None) == rules.has_indicator, "the rules have an indicator, or the deal has one"),
        ((dealt.trump is not None) == rules.trump, "the rules have a trump, or the deal has one"),
        (in_order((*face_up, *held, *dealt.pool)) == tiles, "the tiles are not the tile set"),
        (dealt.indicator != FALSE_JOKER, "the indicator is a false joker"),
        (all(len(rack.tiles) == sizes.get(rack.seat) for rack in dealt.racks), "a rack has another size"),
        (not any(rack.has_melded for rack in dealt.racks), "a player has melded"),
        (starter in {None, dealt.order[0]}, f"seat {starter} was to start"),
    ):
        if not holds:
            raise ImpossibleDealError(problem)
    if dealt.order != _order(game, dealt.order[0]):
        raise ImpossibleDealError("the turns do not go counterclockwise")
