"""Writes the moves of finished games into a Parquet file, one row a move. Needs pyarrow.

Usage: records_to_parquet.py host:port file.parquet GAME_ID...
"""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

import rummikub

address, file, *game_ids = sys.argv[1:]
rows = []
with rummikub.Rummikub(address) as client:
    for game_id in game_ids:
        record = client.records.ExportGame(rummikub.ExportGameRequest(game_id=game_id)).record
        players = {player.seat: player for player in record.players}
        for move in record.moves:
            player = players.get(move.seat, rummikub.RecordedPlayer())
            rows.append(
                {
                    "game_id": game_id,
                    "revision": move.revision,
                    "time": move.time.ToDatetime(),
                    "kind": rummikub.MoveKind.Name(move.kind).removeprefix("MOVE_KIND_"),
                    "seat": move.seat,
                    "player": player.name,
                    "is_program": player.is_program or player.bot_level != rummikub.BOT_LEVEL_UNSPECIFIED,
                    "tiles": [rummikub.tile_name(tile) for tile in move.tiles],
                }
            )
pq.write_table(pa.Table.from_pylist(rows), file)
print(f"{len(rows)} moves of {len(game_ids)} games")
