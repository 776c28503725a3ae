"""Protobuf <-> engine: the only room that knows both.

Decoding checks the form of a request and raises InvalidRequest naming the field at fault; whether a well-formed turn is
legal is the engine's affair. Encoding takes views, which have no room for a hidden tile.

Each service has a module, and so has what they share. What others use of them is named here.
"""

from service.codec.analysis import (
    BATCH_TIME_LIMIT_MS,
    encode_arrangement,
    encode_existence,
    encode_suggestion,
    objective,
    positions,
    situation,
    tier,
    tiles_to_arrange,
    time_limit,
)
from service.codec.fields import (
    bot_name,
    correlation_id,
    decode,
    etag,
    fingerprint,
    game_id,
    page_cursor,
    page_size,
    page_token,
    player_name,
    request_id,
    revision,
)
from service.codec.games import (
    bot_level,
    encode_bot,
    encode_change,
    encode_game,
    encode_join,
    encode_summary,
    listed_state,
    with_token,
)
from service.codec.rulesets import encode_ruleset, ruleset
from service.codec.tiles import (
    MELD_BYTES_MAX,
    MELD_TILES_MAX,
    MELDS_MAX,
    RACK_TILES_MAX,
    encode_illegal_turn,
    encode_meld,
    encode_reading,
    encode_violation,
    melds,
    reason_number,
)
from service.codec.turns import claim, draft_request, encode_turn, turn_request
from service.codec.validation import BATCH_MELDS_MAX, check_batch, encode_judgement, encode_score, play, round_to_score

__all__ = [
    "BATCH_MELDS_MAX",
    "BATCH_TIME_LIMIT_MS",
    "MELDS_MAX",
    "MELD_BYTES_MAX",
    "MELD_TILES_MAX",
    "RACK_TILES_MAX",
    "bot_level",
    "bot_name",
    "check_batch",
    "claim",
    "correlation_id",
    "decode",
    "draft_request",
    "encode_arrangement",
    "encode_bot",
    "encode_change",
    "encode_existence",
    "encode_game",
    "encode_illegal_turn",
    "encode_join",
    "encode_judgement",
    "encode_meld",
    "encode_reading",
    "encode_ruleset",
    "encode_score",
    "encode_suggestion",
    "encode_summary",
    "encode_turn",
    "encode_violation",
    "etag",
    "fingerprint",
    "game_id",
    "listed_state",
    "melds",
    "objective",
    "page_cursor",
    "page_size",
    "page_token",
    "play",
    "player_name",
    "positions",
    "reason_number",
    "request_id",
    "revision",
    "round_to_score",
    "ruleset",
    "situation",
    "tier",
    "tiles_to_arrange",
    "time_limit",
    "turn_request",
    "with_token",
]
