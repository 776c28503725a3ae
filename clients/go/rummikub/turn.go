package rummikub

import pb "rummikub.example/go/rummikubv1"

// Play returns the request to play tiles in a game as the caller has seen it. table has all melds after the turn.
func Play(game *pb.Game, table []*pb.Meld) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Play{Play: &pb.PlayTiles{Table: &pb.Table{Melds: table}}}
	return request
}

// Place returns the request to play tiles in the cross layout, in a game as the caller has seen it. placements has all
// tiles of the table after the turn; those of the game's table can be sent back as they are.
func Place(game *pb.Game, placements []*pb.Placement) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Play{Play: &pb.PlayTiles{Table: &pb.Table{Placements: placements}}}
	return request
}

// Draw returns the request to draw a tile in a game as the caller has seen it.
func Draw(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Draw{Draw: &pb.DrawTile{}}
	return request
}

// Pass returns the request to pass in a game as the caller has seen it.
func Pass(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_PassTurn{PassTurn: &pb.Pass{}}
	return request
}

// TakeFromPool returns the request to take a tile of the pool, in a game of discards as the caller has seen it.
func TakeFromPool(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_TakeFromPool{TakeFromPool: &pb.TakeFromPool{}}
	return request
}

// TakeDiscard returns the request to take the newest discard of the player before.
func TakeDiscard(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_TakeDiscard{TakeDiscard: &pb.TakeDiscard{}}
	return request
}

// Discard returns the request to discard a tile, which ends the turn.
func Discard(game *pb.Game, tile pb.Tile) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Discard{Discard: &pb.DiscardTile{Tile: tile}}
	return request
}

// Finish returns the request to discard a tile and finish. hand has the melds or pairs, none: as the service finds them.
func Finish(game *pb.Game, tile pb.Tile, hand []*pb.HandPart) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Finish{Finish: &pb.FinishHand{Tile: tile, Hand: hand}}
	return request
}

// Foot returns the request to discard a tile and finish by a Foot. table is as for Lay, with all other tiles of the rack.
func Foot(game *pb.Game, tile pb.Tile, table []*pb.HandPart) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Finish{Finish: &pb.FinishHand{Tile: tile, Table: table}}
	return request
}

// Lay returns the request to lay tiles in a game of discards with a table. table has all its melds and pairs afterwards:
// those of the game's table at their places, grown or as they are, and then new ones.
func Lay(game *pb.Game, table []*pb.HandPart) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_Lay{Lay: &pb.LayTiles{Table: table}}
	return request
}

// ReturnDiscard returns the request to put the discard or the trump taken in this turn back and take a tile of the pool.
func ReturnDiscard(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_ReturnDiscard{ReturnDiscard: &pb.ReturnDiscard{}}
	return request
}

// TakeTrump returns the request to take the trump in place of a tile of the pool.
func TakeTrump(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_TakeTrump{TakeTrump: &pb.TakeTrump{}}
	return request
}

// PassEmptyPool returns the request to take no tile from an empty pool, which ends the round.
func PassEmptyPool(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_PassEmptyPool{PassEmptyPool: &pb.PassEmptyPool{}}
	return request
}

// ShowIndicator returns the request to show the indicator's twin.
func ShowIndicator(game *pb.Game) *pb.PlayTurnRequest {
	request := turn(game)
	request.Action = &pb.PlayTurnRequest_ShowIndicator{ShowIndicator: &pb.ShowIndicator{}}
	return request
}

// turn returns a turn in the game as the player has seen it.
func turn(game *pb.Game) *pb.PlayTurnRequest {
	return &pb.PlayTurnRequest{GameId: game.GameId, Etag: game.Etag}
}

// MeldsOf returns the melds of a table as a player sends them back. It keeps their kinds, and declares the faces of the
// jokers of a meld if each can stand for one face only.
func MeldsOf(table []*pb.Meld) []*pb.Meld {
	melds := make([]*pb.Meld, len(table))
	for i, meld := range table {
		melds[i] = &pb.Meld{Tiles: meld.Tiles, Kind: meld.Kind, DeclaredFaces: declared(meld.Jokers)}
	}
	return melds
}

func declared(jokers []*pb.JokerFaces) []pb.Tile {
	var faces []pb.Tile
	for _, joker := range jokers {
		if len(joker.Faces) != 1 {
			return nil
		}
		faces = append(faces, joker.Faces[0])
	}
	return faces
}
