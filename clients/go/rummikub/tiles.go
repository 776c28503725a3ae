package rummikub

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "rummikub.example/go/rummikubv1"
)

const (
	colors = "RBKOGP" // red, blue, black, orange, green, purple
	values = 13
)

// firstOf has the number of the 1 of each color, in the order of colors.
var firstOf = [len(colors)]pb.Tile{
	pb.Tile_TILE_RED_1, pb.Tile_TILE_BLUE_1, pb.Tile_TILE_BLACK_1,
	pb.Tile_TILE_ORANGE_1, pb.Tile_TILE_GREEN_1, pb.Tile_TILE_PURPLE_1,
}

// noNumber has the names of the tiles without a number.
var noNumber = map[pb.Tile]string{
	pb.Tile_TILE_JOKER: "J", pb.Tile_TILE_FALSE_JOKER: "F",
	pb.Tile_TILE_DOUBLE_JOKER: "D", pb.Tile_TILE_MIRROR: "M", pb.Tile_TILE_COLOR_CHANGE: "C",
}

// TileName returns the short name of a tile: `R7`, `J` for a joker, `F` for a false one, or `D`, `M` and `C` for the
// double joker, the mirror and the color change of Rummikub Twist; `?` and the number of an unknown one.
func TileName(tile pb.Tile) string {
	if name, found := noNumber[tile]; found {
		return name
	}
	for i, first := range firstOf {
		if first <= tile && tile < first+values {
			return colors[i:i+1] + strconv.Itoa(int(tile-first)+1)
		}
	}
	return fmt.Sprintf("?%d", tile)
}

// ParseTile returns the tile of a short name, in capitals or not.
func ParseTile(name string) (pb.Tile, error) {
	name = strings.ToUpper(name)
	for tile, known := range noNumber {
		if name == known {
			return tile, nil
		}
	}
	if len(name) > 1 && name[1] != '0' {
		color := strings.IndexByte(colors, name[0])
		value, err := strconv.ParseUint(name[1:], 10, 8)
		if color >= 0 && err == nil && value <= values {
			return firstOf[color] + pb.Tile(value-1), nil
		}
	}
	return 0, fmt.Errorf("rummikub: %q is no tile: use one of %s and 1 to %d, or J, F, D, M or C", name, colors, values)
}

// ParseTiles returns the tiles of a text such as `R7 B7 J`.
func ParseTiles(text string) ([]pb.Tile, error) {
	var tiles []pb.Tile
	for _, name := range strings.Fields(text) {
		tile, err := ParseTile(name)
		if err != nil {
			return nil, err
		}
		tiles = append(tiles, tile)
	}
	return tiles, nil
}

// FormatTiles returns tiles as text: `R7 B7 J`.
func FormatTiles(tiles []pb.Tile) string {
	names := make([]string, len(tiles))
	for i, tile := range tiles {
		names[i] = TileName(tile)
	}
	return strings.Join(names, " ")
}

// AnyMeld is a meld of the contract, such as *Meld, *MeldReading or *HandPart.
type AnyMeld interface{ GetTiles() []pb.Tile }

// FormatMelds returns melds as text: `[R7 R8 R9] | [B4 K4 O4]`, or `.` for none.
func FormatMelds[M AnyMeld](melds []M) string {
	if len(melds) == 0 {
		return "."
	}
	texts := make([]string, len(melds))
	for i, meld := range melds {
		texts[i] = "[" + FormatTiles(meld.GetTiles()) + "]"
	}
	return strings.Join(texts, " | ")
}

// FormatTable returns a table as text: its melds, or in the cross layout the neighbors in a row, each time after the
// column and the row of the first: `0,0[R3 R4 R5] | 1,1[B4]`.
func FormatTable(table *pb.Table) string {
	if len(table.GetPlacements()) == 0 {
		return FormatMelds(table.GetMelds())
	}
	placements := slices.SortedStableFunc(slices.Values(table.Placements), func(a, b *pb.Placement) int {
		return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X))
	})
	var text strings.Builder
	for i, placement := range placements {
		switch {
		case i == 0:
			fmt.Fprintf(&text, "%d,%d[", placement.X, placement.Y)
		case placement.Y == placements[i-1].Y && placement.X == placements[i-1].X+1:
			text.WriteString(" ")
		default:
			fmt.Fprintf(&text, "] | %d,%d[", placement.X, placement.Y)
		}
		text.WriteString(TileName(placement.Tile))
	}
	return text.String() + "]"
}

// FormatBoard returns the board of a game of discards as text: the tiles that lie face up (the indicator and the okey, or
// the trump), and the newest discard of each player after the seat, `O4 / O5 / 1{R7} 2{}`; then a table with melds,
// `O4 / O5 / 1{R7} 2{} / [R7 R8 R9]`. It is `.` for none.
func FormatBoard(board *pb.DiscardBoard) string {
	if board == nil {
		return "."
	}
	piles := make([]string, len(board.Piles))
	for i, pile := range board.Piles {
		newest := ""
		if pile.Newest != pb.Tile_TILE_UNSPECIFIED {
			newest = TileName(pile.Newest)
		}
		piles[i] = fmt.Sprintf("%d{%s}", pile.Seat, newest)
	}
	var parts []string
	for _, tile := range []pb.Tile{board.Indicator, board.Okey, board.Trump} {
		if tile != pb.Tile_TILE_UNSPECIFIED {
			parts = append(parts, TileName(tile))
		}
	}
	parts = append(parts, strings.Join(piles, " "))
	if len(board.Table) > 0 {
		parts = append(parts, FormatMelds(board.Table))
	}
	return strings.Join(parts, " / ")
}

// ParseMelds returns the melds of a text that FormatMelds returns; none for an empty text.
func ParseMelds(text string) ([]*pb.Meld, error) {
	if text = strings.TrimSpace(text); text == "" || text == "." {
		return nil, nil
	}
	var melds []*pb.Meld
	for _, part := range strings.Split(text, "|") {
		inner, opened := strings.CutPrefix(strings.TrimSpace(part), "[")
		inner, closed := strings.CutSuffix(inner, "]")
		if !opened || !closed {
			return nil, fmt.Errorf("rummikub: %q is no meld: write it as [R7 R8 R9]", part)
		}
		tiles, err := ParseTiles(inner)
		if err != nil {
			return nil, err
		}
		melds = append(melds, &pb.Meld{Tiles: tiles})
	}
	return melds, nil
}
