package rummikub

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "rummikub.example/go/rummikubv1"
)

func TestTilesHaveNames(t *testing.T) {
	for number, name := range pb.Tile_name {
		if number == 0 {
			continue
		}
		tile := pb.Tile(number)
		short := TileName(tile)
		if parsed, err := ParseTile(short); err != nil || parsed != tile {
			t.Errorf("%s is named %s, which is %v (%v)", name, short, parsed, err)
		}
		if color := map[byte]string{'R': "_RED_", 'B': "_BLUE_", 'K': "_BLACK_", 'O': "_ORANGE_", 'G': "_GREEN_",
			'P': "_PURPLE_", 'J': "_JOKER", 'F': "_FALSE_JOKER", 'D': "_DOUBLE_JOKER",
			'M': "_MIRROR", 'C': "_COLOR_CHANGE"}[short[0]]; "TILE"+color+short[1:] != name {
			t.Errorf("%s is named %s", name, short)
		}
	}
	if tile, err := ParseTile("r7"); err != nil || tile != pb.Tile_TILE_RED_7 {
		t.Errorf("r7 is %v (%v)", tile, err)
	}
	if name := TileName(200); name != "?200" {
		t.Error(name)
	}
	for _, name := range []string{"", "R", "R0", "R01", "R14", "X1", "JJ", "R+1"} {
		if tile, err := ParseTile(name); err == nil || !strings.Contains(err.Error(), "is no tile") {
			t.Errorf("%q is %v (%v)", name, tile, err)
		}
	}
}

func TestTables(t *testing.T) {
	for _, text := range []string{".", "[R7 R8 R9]", "[R7 R8 J] | [B4 K4 O4]", "[]"} {
		melds, err := ParseMelds(text)
		if err != nil || FormatMelds(melds) != text {
			t.Errorf("%q is %q (%v)", text, FormatMelds(melds), err)
		}
	}
	if melds, err := ParseMelds(""); err != nil || len(melds) > 0 {
		t.Errorf("an empty text is %v (%v)", melds, err)
	}
	for _, text := range []string{"R7 R8", "[R7", "[R7 X9]", "[R7] |"} {
		if melds, err := ParseMelds(text); err == nil {
			t.Errorf("%q is %q", text, FormatMelds(melds))
		}
	}
}

func TestATableOfTheCrossLayoutIsTheTextOfItsRows(t *testing.T) {
	at := func(tile pb.Tile, x, y int32) *pb.Placement { return &pb.Placement{Tile: tile, X: x, Y: y} }
	below, row := at(pb.Tile_TILE_BLUE_4, 1, 1), []*pb.Placement{at(pb.Tile_TILE_RED_4, 1, 0), at(pb.Tile_TILE_RED_3, 0, 0)}
	apart, before := at(pb.Tile_TILE_JOKER, 3, 0), at(pb.Tile_TILE_RED_9, -2, -1)
	for text, placements := range map[string][]*pb.Placement{
		"0,0[R3 R4]": row,
		"-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]": append(row, below, apart, before),
	} {
		if formatted := FormatTable(&pb.Table{Placements: placements}); formatted != text {
			t.Errorf("%q, want %q", formatted, text)
		}
	}
	if melds, _ := ParseMelds("[R7 R8 R9]"); FormatTable(&pb.Table{Melds: melds}) != "[R7 R8 R9]" || FormatTable(nil) != "." {
		t.Error("a table of melds has another text")
	}
}

func TestABoardIsTheTextOfItsIndicatorOkeyNewestDiscardsAndTable(t *testing.T) {
	piles := []*pb.DiscardPile{{Seat: 1, Newest: pb.Tile_TILE_FALSE_JOKER, TileCount: 2}, {Seat: 3}}
	board := &pb.DiscardBoard{Indicator: pb.Tile_TILE_ORANGE_4, Okey: pb.Tile_TILE_ORANGE_5, Piles: piles}
	if text := FormatBoard(board); text != "O4 / O5 / 1{F} 3{}" {
		t.Error(text)
	}
	board.Table = []*pb.HandPart{
		{Tiles: []pb.Tile{pb.Tile_TILE_RED_7, pb.Tile_TILE_RED_8, pb.Tile_TILE_RED_9}},
		{Tiles: []pb.Tile{pb.Tile_TILE_BLUE_1, pb.Tile_TILE_BLUE_1}},
	}
	if text := FormatBoard(board); text != "O4 / O5 / 1{F} 3{} / [R7 R8 R9] | [B1 B1]" {
		t.Error(text)
	}
	if text := FormatBoard(&pb.DiscardBoard{Trump: pb.Tile_TILE_RED_8, Piles: piles}); text != "R8 / 1{F} 3{}" {
		t.Error(text)
	}
	if text := FormatBoard((&pb.Game{}).GetDiscardBoard()); text != "." {
		t.Error(text)
	}
}

func TestMeldsDeclareFacesOfJokersThatCanStandForOneOnly(t *testing.T) {
	one := &pb.JokerFaces{Faces: []pb.Tile{pb.Tile_TILE_RED_9}}
	two := &pb.JokerFaces{Faces: []pb.Tile{pb.Tile_TILE_RED_9, pb.Tile_TILE_BLUE_9}}
	run := pb.MeldKind_MELD_KIND_RUN
	sent := MeldsOf([]*pb.Meld{
		{Kind: run, Points: 9, Jokers: []*pb.JokerFaces{one}},
		{Jokers: []*pb.JokerFaces{one, two}},
	})
	want := []*pb.Meld{{Kind: run, DeclaredFaces: one.Faces}, {}}
	for i := range want {
		if !proto.Equal(sent[i], want[i]) {
			t.Errorf("%v, want %v", sent[i], want[i])
		}
	}
}

func TestTurnsHaveTheEtag(t *testing.T) {
	game := &pb.Game{GameId: "1", Etag: "x"}
	for _, request := range []*pb.PlayTurnRequest{
		Play(game, nil), Place(game, nil), Draw(game), Pass(game), TakeFromPool(game), TakeDiscard(game),
		Discard(game, pb.Tile_TILE_RED_1), Finish(game, pb.Tile_TILE_RED_1, nil), Lay(game, nil), ReturnDiscard(game),
		ShowIndicator(game), Foot(game, pb.Tile_TILE_RED_1, nil), TakeTrump(game), PassEmptyPool(game),
	} {
		if request.GameId != "1" || request.Etag != "x" || request.Action == nil {
			t.Error(request)
		}
	}
}

func TestATurnPlacesTiles(t *testing.T) {
	placed := &pb.Placement{Tile: pb.Tile_TILE_RED_3, X: -1}
	table := Place(&pb.Game{}, []*pb.Placement{placed}).GetPlay().Table
	if !proto.Equal(table, &pb.Table{Placements: []*pb.Placement{placed}}) {
		t.Error(table)
	}
}

func TestATurnDiscardsATile(t *testing.T) {
	okey, hand := pb.Tile_TILE_ORANGE_5, []*pb.HandPart{{Tiles: []pb.Tile{pb.Tile_TILE_RED_3, pb.Tile_TILE_RED_3}}}
	if discarded := Discard(&pb.Game{}, okey).GetDiscard(); discarded.Tile != okey {
		t.Error(discarded)
	}
	finished := Finish(&pb.Game{}, okey, hand).GetFinish()
	if finished.Tile != okey || FormatMelds(finished.Hand) != "[R3 R3]" {
		t.Error(finished)
	}
	if laid := Lay(&pb.Game{}, hand).GetLay(); FormatMelds(laid.Table) != "[R3 R3]" {
		t.Error(laid)
	}
}
