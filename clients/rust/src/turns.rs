//! Requests of turns in a game as the caller has seen it: if the game has changed since, the turn is refused.

use crate::v1::play_turn_request::Action;
use crate::v1::{DrawTile, Game, Meld, Pass, PlayTiles, PlayTurnRequest, Table};

/// Returns the request to play tiles; `table` has all melds after the turn.
#[must_use]
pub fn play(game: &Game, table: Vec<Meld>) -> PlayTurnRequest {
    turn(game, Action::Play(PlayTiles { table: Some(Table { melds: table }), ..Default::default() }))
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
    use crate::tiles::parse_melds;

    #[test]
    fn a_turn_has_the_state_that_its_player_has_seen() {
        let game = Game { game_id: "g".into(), revision: 7, etag: "e7".into(), ..Default::default() };
        let table = parse_melds("[R7 R8 J]").unwrap();
        let turns = [play(&game, table.clone()), draw(&game), pass(&game)];
        assert!(turns.iter().all(|turn| (turn.game_id.as_str(), turn.etag.as_str()) == ("g", "e7")));
        let actions = turns.map(|turn| turn.action.unwrap());
        assert_eq!(actions[0], Action::Play(PlayTiles { table: Some(Table { melds: table }), ..Default::default() }));
        assert_eq!(actions[1..], [Action::Draw(DrawTile {}), Action::PassTurn(Pass {})]);
    }
}
