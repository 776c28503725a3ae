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
