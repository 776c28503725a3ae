//! Tiles by name: `R7` is the red 7, `J` the joker, `F` a false joker; `[R7 R8 R9] | [B1 K1 O1]` is a table.
//! `D`, `M` and `C` are the double joker, the mirror and the color change of Rummikub Twist.
//!
//! [`Tile`] implements `Display` and `FromStr`. Fields of messages are numbers (`i32`), because a newer server may send
//! tiles that this client does not know: they are formatted as `?` and the number. For the text of a whole position,
//! use [`Rummikub::format_position`](crate::Rummikub::format_position).

use std::fmt;
use std::str::FromStr;

use crate::v1::{DiscardBoard, Meld, Placement, Table, Tile};

/// The letters of the colors, in the order of the numbers of the tiles.
const COLORS: [char; 6] = ['R', 'B', 'K', 'O', 'G', 'P'];
/// The number of values of a color.
const VALUES: i32 = 13;
/// The tiles without a number.
const NO_NUMBER: [(Tile, &str); 5] = [
    (Tile::Joker, "J"),
    (Tile::FalseJoker, "F"),
    (Tile::DoubleJoker, "D"),
    (Tile::Mirror, "M"),
    (Tile::ColorChange, "C"),
];

/// A text that is not a tile, a meld or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileError(String);

impl fmt::Display for TileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TileError {}

impl FromStr for Tile {
    type Err = TileError;

    /// Returns the tile with a name, in capitals or not.
    fn from_str(text: &str) -> Result<Self, TileError> {
        if let Some((tile, _)) = NO_NUMBER.iter().find(|(_, name)| text.eq_ignore_ascii_case(name)) {
            return Ok(*tile);
        }
        let number = || {
            let mut letters = text.chars();
            let letter = letters.next()?.to_ascii_uppercase();
            let color = COLORS.iter().position(|&known| known == letter)?;
            let value: i32 = letters.as_str().parse().ok()?;
            let canonical = (1..=VALUES).contains(&value) && value.to_string() == letters.as_str();
            canonical.then(|| first_of_color(color) + value - 1)
        };
        number().and_then(|number| Self::try_from(number).ok()).ok_or_else(|| {
            TileError(format!(
                "{text:?} is no tile; a tile is J, F, D, M, C, or a letter of RBKOGP with a value from 1 to 13 (R7)"
            ))
        })
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = NO_NUMBER.iter().find(|(tile, _)| tile == self) {
            return formatter.write_str(name);
        }
        let number = *self as i32;
        let color = (0..COLORS.len()).rev().find(|&color| first_of_color(color) <= number);
        match color {
            Some(color) => write!(formatter, "{}{}", COLORS[color], number - first_of_color(color) + 1),
            None => formatter.write_str("?0"),
        }
    }
}

/// Returns the number of the 1 of a color. Between the fourth and the fifth color is the joker.
fn first_of_color(color: usize) -> i32 {
    const JOKER: usize = 4;
    i32::try_from(color).unwrap_or_default() * VALUES + 1 + i32::from(color >= JOKER)
}

/// Formats tiles: `R7 R8 J`.
#[must_use]
pub fn tiles_text(tiles: &[i32]) -> String {
    let texts: Vec<String> = tiles
        .iter()
        .map(|&number| Tile::try_from(number).map_or_else(|_| format!("?{number}"), |tile| tile.to_string()))
        .collect();
    texts.join(" ")
}

/// Formats the melds of a table: `[R7 R8 R9] | [B1 K1 J]`; `.` if there are none.
#[must_use]
pub fn melds_text<'a>(melds: impl IntoIterator<Item = &'a Meld>) -> String {
    let text = in_brackets(melds.into_iter().map(|meld| meld.tiles.as_slice()));
    if text.is_empty() {
        ".".to_owned()
    } else {
        text
    }
}

/// Formats melds of any message: `[R7 R8 R9] | [B1 K1 J]`.
fn in_brackets<'a>(melds: impl Iterator<Item = &'a [i32]>) -> String {
    let texts: Vec<String> = melds.map(|tiles| format!("[{}]", tiles_text(tiles))).collect();
    texts.join(" | ")
}

/// Formats a table: its melds, or in the cross layout the neighbors in a row, each time after the column and the row of
/// the first: `0,0[R3 R4 R5] | 1,1[B4]`. It is `.` without a table, and for an empty one.
#[must_use]
pub fn table_text(table: Option<&Table>) -> String {
    let Some(table) = table.filter(|table| !table.placements.is_empty()) else {
        return melds_text(table.iter().flat_map(|table| &table.melds));
    };
    let mut placements: Vec<&Placement> = table.placements.iter().collect();
    placements.sort_by_key(|placement| (placement.y, placement.x));
    let row_text = |row: &[&Placement]| {
        let tiles: Vec<i32> = row.iter().map(|placement| placement.tile).collect();
        format!("{},{}[{}]", row[0].x, row[0].y, tiles_text(&tiles))
    };
    let rows = placements.chunk_by(|left, right| left.y == right.y && right.x == left.x.saturating_add(1));
    rows.map(row_text).collect::<Vec<_>>().join(" | ")
}

/// Formats the board of a game of discards: the tiles that lie face up (the indicator and the okey, or the trump), and the
/// newest discard of each player after the seat, `O4 / O5 / 1{R7} 2{}`; then a table with melds, `O4 / O5 / 1{R7} 2{} /
/// [R7 R8 R9]`. It is `.` without a board.
#[must_use]
pub fn board_text(board: Option<&DiscardBoard>) -> String {
    let Some(board) = board else {
        return ".".to_owned();
    };
    let piles = board.piles.iter().map(|pile| {
        let newest = (pile.newest != Tile::Unspecified as i32).then_some(pile.newest);
        format!("{}{{{}}}", pile.seat, tiles_text(newest.as_slice()))
    });
    let face_up =
        [board.indicator, board.okey, board.trump].into_iter().filter(|tile| *tile != Tile::Unspecified as i32);
    let mut parts = face_up.map(|tile| tiles_text(&[tile])).collect::<Vec<_>>();
    parts.push(piles.collect::<Vec<_>>().join(" "));
    if !board.table.is_empty() {
        parts.push(in_brackets(board.table.iter().map(|part| part.tiles.as_slice())));
    }
    parts.join(" / ")
}

/// Parses tiles: `R7 R8 J`.
pub fn parse_tiles(text: &str) -> Result<Vec<i32>, TileError> {
    text.split_whitespace().map(|name| name.parse::<Tile>().map(|tile| tile as i32)).collect()
}

/// Parses the melds of a table: `[R7 R8 R9] | [B1 K1 J]`; none for `.` and for an empty text.
pub fn parse_melds(text: &str) -> Result<Vec<Meld>, TileError> {
    if matches!(text.trim(), "" | ".") {
        return Ok(Vec::new());
    }
    text.split('|').map(parse_meld).collect()
}

fn parse_meld(text: &str) -> Result<Meld, TileError> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner =
        inner.ok_or_else(|| TileError(format!("{text:?} is no meld; a meld is tiles in brackets: [R7 R8 R9]")))?;
    Ok(Meld { tiles: parse_tiles(inner)?, ..Meld::default() })
}

impl From<&Meld> for Meld {
    /// Returns the meld as it is sent to play it again: each joker's face is declared if only one is possible.
    fn from(meld: &Meld) -> Self {
        let declares = meld.jokers.iter().all(|joker| joker.faces.len() == 1);
        let faces = meld.jokers.iter().filter(|_| declares).map(|joker| joker.faces[0]);
        Self { tiles: meld.tiles.clone(), kind: meld.kind, declared_faces: faces.collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{DiscardPile, HandPart};

    #[test]
    fn every_tile_has_a_name_of_its_own() {
        let names: Vec<String> = (1..=83).map(|number| tiles_text(&[number])).collect();
        let parsed: Vec<i32> = names.iter().flat_map(|name| parse_tiles(name).unwrap()).collect();
        assert_eq!(parsed, (1..=83).collect::<Vec<_>>());
        for (tile, name) in [
            (Tile::Red7, "R7"),
            (Tile::Blue13, "B13"),
            (Tile::Black1, "K1"),
            (Tile::Orange10, "O10"),
            (Tile::Joker, "J"),
            (Tile::FalseJoker, "F"),
            (Tile::DoubleJoker, "D"),
            (Tile::Mirror, "M"),
            (Tile::ColorChange, "C"),
            (Tile::Green5, "G5"),
            (Tile::Purple2, "P2"),
        ] {
            assert_eq!(tile.to_string(), name);
        }
    }

    #[test]
    fn texts_that_are_no_tiles_are_refused() {
        for text in ["", "R", "R0", "R14", "R07", "R+7", "X1", "JJ", "R7R8", "é1"] {
            assert!(text.parse::<Tile>().is_err(), "{text}");
        }
        assert!(parse_melds("R7 R8 R9").is_err());
    }

    #[test]
    fn a_table_is_formatted_and_parsed() {
        let text = "[R7 R8 J] | [B1 K1 O1]";
        let melds = parse_melds(text).unwrap();
        assert_eq!(melds_text(&melds), text);
        assert_eq!(melds_text(&[]), ".");
        assert_eq!(parse_melds("[r7 r8 j] | [b1 k1 o1]").unwrap(), parse_melds(text).unwrap());
        assert!(parse_melds(".").unwrap().is_empty());
        assert!(parse_melds("").unwrap().is_empty());
        assert_eq!(tiles_text(&[1, 120]), "R1 ?120");
        assert_eq!(table_text(Some(&Table { melds, ..Default::default() })), text);
        assert_eq!(table_text(None), ".");
    }

    #[test]
    fn a_table_of_the_cross_layout_is_the_text_of_its_rows() {
        let at = |tile: Tile, x, y| Placement { tile: tile.into(), x, y, ..Default::default() };
        let text = |placements| table_text(Some(&Table { placements, ..Default::default() }));
        let row = vec![at(Tile::Red4, 1, 0), at(Tile::Red3, 0, 0)];
        assert_eq!(text(row.clone()), "0,0[R3 R4]");
        let others = [at(Tile::Blue4, 1, 1), at(Tile::Joker, 3, 0), at(Tile::Red9, -2, -1)];
        assert_eq!(text([row, others.into()].concat()), "-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]");
    }

    #[test]
    fn a_board_is_the_text_of_its_indicator_okey_newest_discards_and_table() {
        let pile = |seat, newest| DiscardPile { seat, newest, tile_count: 1 };
        let mut board = DiscardBoard {
            indicator: Tile::Orange4.into(),
            okey: Tile::Orange5.into(),
            piles: vec![pile(1, Tile::FalseJoker.into()), pile(3, 0)],
            ..Default::default()
        };
        assert_eq!(board_text(Some(&board)), "O4 / O5 / 1{F} 3{}");
        board.table = ["R7 R8 R9", "B1 B1"].map(|part| HandPart { tiles: parse_tiles(part).unwrap() }).into();
        assert_eq!(board_text(Some(&board)), "O4 / O5 / 1{F} 3{} / [R7 R8 R9] | [B1 B1]");
        let piles = board.piles;
        let with_trump = DiscardBoard { trump: Tile::Red8.into(), piles, ..Default::default() };
        assert_eq!(board_text(Some(&with_trump)), "R8 / 1{F} 3{}");
        assert_eq!(board_text(None), ".");
    }
}
