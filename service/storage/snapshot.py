"""The stored form of games, drafts and memos.

Values that few games have are written only if present: who declined the initial meld; the key of the game's creator;
what only the operator sees; who was kicked from a lobby, and for whom its seats are reserved. A server that does not
know keys cannot read a game with one, so it shows the game to nobody. One that does not know the others reads such a
game without them.
"""

from itertools import pairwise
from typing import Any, Final

import orjson

from engine.game import Aborted, Finished, Game, Lobby, Phase, Playing, Round, RoundOver
from engine.melding.drafts import Draft
from engine.melding.fast.identity_cache import identity_cache
from engine.melding.round import Choosing, Drawn, Open, ShownPlay, Step
from engine.seats import Player
from service.errors import StoredFormatUnknown
from service.model.change import Memo
from service.model.record import (
    NO_OPERATOR_DATA,
    Kicked,
    Listing,
    OperatorData,
    PlayerRef,
    Record,
    SeatToken,
    Visibility,
)
from service.storage.stored_values import (
    FORMAT,
    Json,
    dump,
    load,
    read_each,
    read_flag,
    read_level,
    read_number,
    read_optional,
    read_points,
    read_proposed,
    read_rack,
    read_reason,
    read_reserved,
    read_result,
    read_ruleset,
    read_seat,
    read_seats,
    read_table,
    read_text,
    read_tile,
    read_tiles,
    read_time,
    read_turn,
    reading,
    write_declined,
    write_proposed,
    write_rack,
    write_reserved,
    write_result,
    write_ruleset,
    write_table,
    write_tiles,
    write_turn,
)

FINGERPRINT_BYTES: Final = 32


def encode_record(record: Record) -> bytes:
    """Returns a game's stored bytes."""
    return dump(
        {
            "format": FORMAT,
            "id": record.game_id,
            "etag": record.etag,
            "tokens": _write_tokens(record.tokens),
            "created": record.created_ms,
            "updated": record.updated_ms,
            "listing": _write_listing(record.listing),
            "emptied": record.is_emptied,
            "game": _write_game(record.game),
            **_write_operator(record.operator_data),
            **_write_kicked(record.kicked),
            **({"invited": _write_tokens(record.invited)} if record.invited else {}),
        }
    )


@identity_cache(maxsize=4_096)
def _write_tokens(tokens: tuple[SeatToken, ...]) -> orjson.Fragment:
    return orjson.Fragment(dump({str(token.seat): token.digest.hex() for token in tokens}))


def _read_tokens(stored: Json) -> tuple[SeatToken, ...]:
    return tuple(SeatToken(int(seat), bytes.fromhex(digest)) for seat, digest in stored.items())


@reading()
def decode_record(data: bytes) -> Record:
    """Returns a game from its stored bytes. Raises StoredFormatUnknown."""
    stored = load(data)
    return Record(
        game_id=read_text(stored["id"]),
        game=_read_game(stored["game"]),
        etag=read_text(stored["etag"]),
        tokens=_read_tokens(stored["tokens"]),
        created_ms=read_time(stored["created"]),
        updated_ms=read_time(stored["updated"]),
        listing=_read_listing(stored["listing"]),
        is_emptied=read_flag(stored["emptied"]),
        operator_data=_read_operator(stored["operator"]) if "operator" in stored else NO_OPERATOR_DATA,
        kicked=read_each(_read_kicked, stored.get("kicked", [])),
        invited=_read_tokens(stored.get("invited", {})),
    )


@identity_cache(maxsize=4_096)
def _write_listing(listing: Listing) -> orjson.Fragment:
    values = [listing.visibility.value, listing.join_code, listing.labels, *([listing.key] if listing.key else ())]
    return orjson.Fragment(dump(values))


def _read_listing(stored: list[Any]) -> Listing:
    visibility, join_code, labels, *key = stored
    if len(key) > 1:
        raise StoredFormatUnknown
    own = read_text(key[0]) if key else ""
    return Listing(Visibility(visibility), read_text(join_code), read_each(_read_label, labels), own)


def _write_operator(operator: OperatorData) -> Json:
    if operator == NO_OPERATOR_DATA:
        return {}
    refs = [[ref.revision, ref.seat, ref.text, ref.has_left] for ref in operator.player_refs]
    return {"operator": [operator.labels, refs]}


def _read_operator(stored: list[Any]) -> OperatorData:
    labels, refs = stored
    return OperatorData(read_each(_read_label, labels), read_each(_read_player_ref, refs))


def _write_kicked(kicked: tuple[Kicked, ...]) -> Json:
    return {"kicked": [[one.name, one.player_ref] for one in kicked]} if kicked else {}


def _read_kicked(stored: list[Any]) -> Kicked:
    name, player_ref = stored
    return Kicked(read_text(name), read_text(player_ref))


def _read_player_ref(stored: list[Any]) -> PlayerRef:
    revision, seat, text, has_left = stored
    return PlayerRef(read_number(revision), read_seat(seat), read_text(text), read_flag(has_left))


def _read_label(stored: list[Any]) -> tuple[str, str]:
    key, value = stored
    return read_text(key), read_text(value)


def readable_record(data: bytes | None) -> Record | None:
    """Returns a listed game; None if it has expired or cannot be read."""
    try:
        return decode_record(data) if data else None
    except StoredFormatUnknown:
        return None


def _write_step(step: Step) -> list[Any]:
    match step:
        case Open():
            return ["Open"]
        case Choosing(tiles):
            return ["Choosing", write_tiles(tiles)]
        case Drawn(tile):
            return ["Drawn", tile]


def _read_step(stored: list[Any]) -> Step:
    match stored:
        case ["Open"]:
            return Open()
        case ["Choosing", tiles]:
            first, second = read_tiles(tiles)
            return Choosing((first, second))
        case ["Drawn", tile]:
            return Drawn(read_tile(tile))
        case _:
            raise StoredFormatUnknown


def _write_shown_play(shown: ShownPlay) -> Json:
    return {
        "revision": shown.revision,
        "table": write_proposed(shown.table),
        "reasons": [reason.name for reason in shown.reasons],
        "claimed": list(shown.claimed),
        "against": shown.against,
    }


def _read_shown_play(stored: Json) -> ShownPlay:
    return ShownPlay(
        revision=read_number(stored["revision"]),
        table=read_proposed(stored["table"]),
        reasons=read_each(read_reason, stored["reasons"]),
        claimed=read_seats(stored["claimed"]),
        against=read_optional(read_seat, stored["against"]),
    )


def _write_round(round_: Round) -> Json:
    return {
        "number": round_.number,
        "order": round_.order,
        "table": write_table(round_.table),
        "racks": [write_rack(rack) for rack in round_.racks],
        "pool": write_tiles(round_.pool),
        "turn": write_turn(round_.turn),
        "passed": round_.passed,
        "river": write_tiles(round_.river),
        "step": _write_step(round_.step),
        "shown_play": None if round_.shown_play is None else _write_shown_play(round_.shown_play),
        "last_chance": round_.last_chance,
        **write_declined(list(round_.declined)),
    }


def _read_round(stored: Json) -> Round:
    return Round(
        number=read_number(stored["number"]),
        order=read_seats(stored["order"]),
        table=read_table(stored["table"]),
        racks=read_each(read_rack, stored["racks"]),
        pool=read_tiles(stored["pool"]),
        turn=read_turn(stored["turn"]),
        passed=read_seats(stored["passed"]),
        river=read_tiles(stored["river"]),
        step=_read_step(stored["step"]),
        shown_play=read_optional(_read_shown_play, stored["shown_play"]),
        last_chance=read_optional(read_seats, stored["last_chance"]),
        declined=read_seats(stored.get("declined", [])),
    )


def _write_phase(phase: Phase) -> Json:
    match phase:
        case Lobby(starts_ms):
            return {"type": "Lobby"} if starts_ms is None else {"type": "Lobby", "starts": starts_ms}
        case Playing(round_):
            return {"type": "Playing", "round": _write_round(round_)}
        case RoundOver(round_, next_round_ms):
            return {"type": "RoundOver", "round": _write_round(round_), "next_round": next_round_ms}
        case Finished(round_, winners, abandoned, rematch):
            finished = {"type": "Finished", "round": _write_round(round_), "winners": list(winners)}
            return {**finished, "abandoned": abandoned, "rematch": rematch}
        case Aborted(round_, rematch):
            return {"type": "Aborted", "round": round_ and _write_round(round_), "rematch": rematch}


def _read_phase(stored: Json) -> Phase:
    match stored["type"]:
        case "Lobby":
            return Lobby(read_optional(read_time, stored.get("starts")))
        case "Playing":
            return Playing(_read_round(stored["round"]))
        case "RoundOver":
            return RoundOver(_read_round(stored["round"]), read_optional(read_time, stored["next_round"]))
        case "Finished":
            winners, abandoned = read_seats(stored["winners"]), read_flag(stored["abandoned"])
            return Finished(_read_round(stored["round"]), winners, abandoned, read_text(stored["rematch"]))
        case "Aborted":
            return Aborted(read_optional(_read_round, stored["round"]), read_text(stored["rematch"]))
        case _:
            raise StoredFormatUnknown


def _write_player(player: Player) -> list[Any]:
    return [
        player.seat,
        player.name,
        player.total_points,
        player.resigned,
        player.bot and player.bot.name,
        player.timeouts_in_a_row,
        player.stand_in and player.stand_in.name,
        player.time_left_ms,
        player.is_ready,
        player.is_host,
        player.wants_abort,
    ]


def _read_player(stored: list[Any]) -> Player:
    seat, name, total_points, resigned, bot, timeouts_in_a_row, stand_in, time_left_ms, *flags = stored
    is_ready, is_host, wants_abort = flags
    return Player(
        read_seat(seat),
        read_text(name),
        read_points(total_points),
        read_flag(resigned),
        read_level(bot),
        read_number(timeouts_in_a_row),
        read_level(stand_in),
        read_optional(read_number, time_left_ms),
        read_flag(is_ready),
        read_flag(is_host),
        read_flag(wants_abort),
    )


def _write_game(game: Game) -> Json:
    return {
        "ruleset": write_ruleset(game.ruleset),
        "revision": game.revision,
        "players": [_write_player(player) for player in game.players],
        "phase": _write_phase(game.phase),
        "results": write_result.map(game.results),
        **write_reserved(game.reserved),
    }


def _read_game(stored: Json) -> Game:
    game = Game(
        ruleset=read_ruleset(stored["ruleset"]),
        revision=read_number(stored["revision"]),
        players=read_each(_read_player, stored["players"]),
        phase=_read_phase(stored["phase"]),
        results=read_each(read_result, stored["results"]),
        reserved=read_reserved(stored),
    )
    if not _has_its_seats(game):
        raise StoredFormatUnknown
    return game


def _has_its_seats(game: Game) -> bool:
    """Returns whether a game names only its own seats.

    Every seat in the round has a rack and a place in the turn order, and last turns begin with the current turn.
    """
    seats, round_ = [player.seat for player in game.players], game.round
    if not _ascending(seats):
        return False
    if round_ is None:
        return True
    dealt_in = [rack.seat for rack in round_.racks]
    named = {round_.turn.seat, *round_.passed, *round_.declined, *(round_.last_chance or ())}
    if shown := round_.shown_play:
        named.update(shown.claimed, () if shown.against is None else (shown.against,))
    return (
        _ascending(dealt_in)
        and sorted(round_.order) == dealt_in
        and named.issubset(dealt_in)
        and (round_.last_chance is None or round_.last_chance[:1] == (round_.turn.seat,))
        and set(seats).issuperset(dealt_in)
    )


def _ascending(seats: list[int]) -> bool:
    return all(seat < following for seat, following in pairwise(seats))


def encode_draft(draft: Draft) -> bytes:
    """Returns a draft's stored bytes, without its number."""
    return dump(
        {
            "format": FORMAT,
            "seat": draft.seat,
            "turn": draft.turn_revision,
            "table": write_proposed(draft.table),
            "legal": draft.is_legal,
        }
    )


@reading()
def decode_draft(data: bytes, number: bytes | int) -> Draft:
    """Returns a draft from its stored bytes and its number. Raises StoredFormatUnknown."""
    stored = load(data)
    return Draft(
        seat=read_seat(stored["seat"]),
        turn_revision=read_number(stored["turn"]),
        table=read_proposed(stored["table"]),
        is_legal=read_flag(stored["legal"]),
        number=int(number),
    )


def encode_memo(memo: Memo) -> bytes:
    """Returns a memo's stored bytes: fingerprint, length of the salt, salt, answer."""
    return memo.fingerprint + bytes([len(memo.salt)]) + memo.salt + memo.answer


@reading()
def decode_memo(data: bytes) -> Memo:
    """Returns a memo from its stored bytes. Raises StoredFormatUnknown."""
    answer = FINGERPRINT_BYTES + 1 + data[FINGERPRINT_BYTES]
    return Memo(data[:FINGERPRINT_BYTES], data[answer:], data[FINGERPRINT_BYTES + 1 : answer])
