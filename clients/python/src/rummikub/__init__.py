"""The Python client of the Rummikub rules service: `Rummikub` for threads, `aio.Rummikub` for asyncio.

All messages, enums and enum values of the contract are names of this module: `rummikub.CreateGameRequest`.
"""

from rummikub import aio as aio
from rummikub.calls import SERVICE_CONFIG as SERVICE_CONFIG, new_request_id as new_request_id
from rummikub.client import Rummikub as Rummikub, Watch as Watch
from rummikub.errors import error_info as error_info, explain as explain, refusal as refusal, violations as violations
from rummikub.notation import (
    board_text as board_text,
    melds as melds,
    melds_text as melds_text,
    table_text as table_text,
    tile as tile,
    tile_name as tile_name,
    tiles as tiles,
    tiles_text as tiles_text,
)
from rummikub.turns import (
    discard as discard,
    draw as draw,
    finish as finish,
    foot as foot,
    lay as lay,
    melds_of as melds_of,
    pass_empty_pool as pass_empty_pool,
    pass_turn as pass_turn,
    place as place,
    play as play,
    return_discard as return_discard,
    show_indicator as show_indicator,
    take_discard as take_discard,
    take_from_pool as take_from_pool,
    take_trump as take_trump,
)
from rummikub.v1.analysis_service_pb2 import *
from rummikub.v1.challenge_service_pb2 import *
from rummikub.v1.discard_pb2 import *
from rummikub.v1.error_reason_pb2 import *
from rummikub.v1.game_pb2 import *
from rummikub.v1.game_service_pb2 import *
from rummikub.v1.meld_pb2 import *
from rummikub.v1.record_pb2 import *
from rummikub.v1.puzzle_service_pb2 import *
from rummikub.v1.record_service_pb2 import *
from rummikub.v1.room_settings_pb2 import *
from rummikub.v1.ruleset_pb2 import *
from rummikub.v1.score_pb2 import *
from rummikub.v1.tile_pb2 import *
from rummikub.v1.turn_service_pb2 import *
from rummikub.v1.validation_service_pb2 import *
from rummikub.v1.violation_pb2 import *
