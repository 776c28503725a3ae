//! Requests of turns in a game as the caller has seen it: if the game has changed since, the turn is refused.

use crate::v1::play_turn_request::Action;
use crate::v1::{
    DiscardTile, DrawTile, FinishHand, Game, HandPart, LayTiles, Meld, Pass, PassEmptyPool, Placement, PlayTiles,
    PlayTurnRequest, ReturnDiscard, ShowIndicator, Table, TakeDiscard, TakeFromPool, TakeTrump, Tile,
};

/// Returns the request to play tiles; `table` has all melds after the turn.
#[must_use]
pub fn play(game: &Game, table: Vec<Meld>) -> PlayTurnRequest {
    play_table(game, Table { melds: table, ..Default::default() })
}

/// Returns the request to play tiles in the cross layout; `placements` has all tiles of the table after the turn. Those of
/// the game's table can be sent back as they are.
#[must_use]
pub fn place(game: &Game, placements: Vec<Placement>) -> PlayTurnRequest {
    play_table(game, Table { placements, ..Default::default() })
}

/// Returns the request to draw a tile.
#[must_use]
pub fn draw(game: &Game) -> PlayTurnRequest {
    turn(game, Action::Draw(DrawTile {}))
}

/// Returns the request to pass.
#[must_use]
pub fn pass(game: &Game) -> PlayTurnRequest {
    turn(game, Action::PassTurn(Pass {}))
}

/// Returns the request to take a tile of the pool, in a game of discards.
#[must_use]
pub fn take_from_pool(game: &Game) -> PlayTurnRequest {
    turn(game, Action::TakeFromPool(TakeFromPool {}))
}

/// Returns the request to take the newest discard of the player before.
#[must_use]
pub fn take_discard(game: &Game) -> PlayTurnRequest {
    turn(game, Action::TakeDiscard(TakeDiscard {}))
}

/// Returns the request to discard a tile, which ends the turn.
#[must_use]
pub fn discard(game: &Game, tile: Tile) -> PlayTurnRequest {
    turn(game, Action::Discard(DiscardTile { tile: tile.into() }))
}

/// Returns the request to discard a tile and finish; `hand` has the melds or pairs, none: as the service finds them.
#[must_use]
pub fn finish(game: &Game, tile: Tile, hand: Vec<HandPart>) -> PlayTurnRequest {
    turn(game, Action::Finish(FinishHand { tile: tile.into(), hand, table: vec![] }))
}

/// Returns the request to discard a tile and finish by a Foot; `table` is as for [`lay`], with all other tiles of the rack.
#[must_use]
pub fn foot(game: &Game, tile: Tile, table: Vec<HandPart>) -> PlayTurnRequest {
    turn(game, Action::Finish(FinishHand { tile: tile.into(), hand: vec![], table }))
}

/// Returns the request to lay tiles in a game of discards with a table; `table` has all its melds and pairs afterwards.
/// Those of the game's table stay at their places, grown or as they are, and new ones follow.
#[must_use]
pub fn lay(game: &Game, table: Vec<HandPart>) -> PlayTurnRequest {
    turn(game, Action::Lay(LayTiles { table }))
}

/// Returns the request to put the discard or the trump taken in this turn back and take a tile of the pool.
#[must_use]
pub fn return_discard(game: &Game) -> PlayTurnRequest {
    turn(game, Action::ReturnDiscard(ReturnDiscard {}))
}

/// Returns the request to take the trump in place of a tile of the pool.
#[must_use]
pub fn take_trump(game: &Game) -> PlayTurnRequest {
    turn(game, Action::TakeTrump(TakeTrump {}))
}

/// Returns the request to take no tile from an empty pool, which ends the round.
#[must_use]
pub fn pass_empty_pool(game: &Game) -> PlayTurnRequest {
    turn(game, Action::PassEmptyPool(PassEmptyPool {}))
}

/// Returns the request to show the indicator's twin.
#[must_use]
pub fn show_indicator(game: &Game) -> PlayTurnRequest {
    turn(game, Action::ShowIndicator(ShowIndicator {}))
}

fn play_table(game: &Game, table: Table) -> PlayTurnRequest {
    turn(game, Action::Play(PlayTiles { table: Some(table), ..Default::default() }))
}

fn turn(game: &Game, action: Action) -> PlayTurnRequest {
    PlayTurnRequest {
        game_id: game.game_id.clone(),
        etag: game.etag.clone(),
        action: Some(action),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::{parse_melds, parse_tiles};

    #[test]
    fn a_turn_has_the_state_that_its_player_has_seen() {
        let game = Game { game_id: "g".into(), revision: 7, etag: "e7".into(), ..Default::default() };
        let table = parse_melds("[R7 R8 J]").unwrap();
        let placed = vec![Placement { tile: 3, x: -1, ..Default::default() }];
        let turns = [play(&game, table.clone()), place(&game, placed.clone()), draw(&game), pass(&game)];
        assert!(turns.iter().all(|turn| (turn.game_id.as_str(), turn.etag.as_str()) == ("g", "e7")));
        let actions = turns.map(|turn| turn.action.unwrap());
        let tables = [Table { melds: table, ..Default::default() }, Table { placements: placed, ..Default::default() }];
        let plays = tables.map(|table| Action::Play(PlayTiles { table: Some(table), ..Default::default() }));
        assert_eq!(actions[..2], plays);
        assert_eq!(actions[2..], [Action::Draw(DrawTile {}), Action::PassTurn(Pass {})]);
    }

    #[test]
    fn a_turn_of_a_game_of_discards_has_it_too() {
        let game = Game { game_id: "g".into(), etag: "e7".into(), ..Default::default() };
        let tile = Tile::FalseJoker;
        let hand = vec![HandPart { tiles: parse_tiles("R7 R7").unwrap() }];
        let turns = [
            take_from_pool(&game),
            take_discard(&game),
            discard(&game, tile),
            finish(&game, tile, hand.clone()),
            lay(&game, hand.clone()),
            return_discard(&game),
            show_indicator(&game),
            foot(&game, tile, hand.clone()),
            take_trump(&game),
            pass_empty_pool(&game),
        ];
        assert!(turns.iter().all(|turn| (turn.game_id.as_str(), turn.etag.as_str()) == ("g", "e7")));
        let actions = turns.map(|turn| turn.action.unwrap());
        let expected = [
            Action::TakeFromPool(TakeFromPool {}),
            Action::TakeDiscard(TakeDiscard {}),
            Action::Discard(DiscardTile { tile: tile.into() }),
            Action::Finish(FinishHand { tile: tile.into(), hand: hand.clone(), table: vec![] }),
            Action::Lay(LayTiles { table: hand.clone() }),
            Action::ReturnDiscard(ReturnDiscard {}),
            Action::ShowIndicator(ShowIndicator {}),
            Action::Finish(FinishHand { tile: tile.into(), hand: vec![], table: hand }),
            Action::TakeTrump(TakeTrump {}),
            Action::PassEmptyPool(PassEmptyPool {}),
        ];
        assert_eq!(actions, expected);
    }
}
