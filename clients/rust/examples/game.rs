//! Plays two rounds against bots, with the turns that the service suggests.

use rummikub_client::tiles::{table_text, tiles_text};
use rummikub_client::v1::*;
use rummikub_client::Rummikub;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".to_owned());
    let preset = std::env::args().nth(2).unwrap_or("PRESET_SABRA".to_owned());
    let preset = Preset::from_str_name(&preset).unwrap_or_default().into();
    let service = Rummikub::connect(&target)?;
    let match_end = MatchEnd::FixedRounds.into();
    let game_end = Some(GameEndOptions { match_end, match_rounds: Some(2), ..Default::default() });
    let melding = MeldingRuleset { preset, game_end, ..Default::default() };
    let rules = Ruleset { game: Some(ruleset::Game::Melding(melding)) };
    let created = service.create_game(CreateGameRequest { ruleset: Some(rules), ..Default::default() }).await?;
    let created_game = created.game.unwrap_or_default();
    let game_id = created_game.game_id;
    let (game, name) = (Some(join_game_request::Game::GameId(game_id.clone())), "Ann".to_owned());
    let host = service.seated(&created.host_token);
    let ann = host.join_game(JoinGameRequest { game, name, ..Default::default() }).await?;
    let ann = service.seated(&ann.seat_token); // store the tokens: they are returned once
    let level = BotLevel::Easy.into();
    let played = created_game.ruleset.and_then(|rules| rules.game);
    let Some(ruleset::Game::Melding(melding)) = played else {
        return Err("the game is not one of melds".into());
    };
    for _ in 1..melding.deal.unwrap_or_default().players_min() {
        ann.add_bot(AddBotRequest { game_id: game_id.clone(), level, ..Default::default() }).await?;
    }
    ann.start_game(StartGameRequest { game_id: game_id.clone(), ..Default::default() }).await?;
    let mut games = ann.watch_games(&game_id);
    while let Some(game) = games.next().await {
        let game = game?;
        println!("{} rack: {}", table_text(game.table.as_ref()), tiles_text(&game.rack));
        if game.turn.as_ref().is_some_and(|turn| turn.seat == game.seat()) {
            let subject = Some(suggest_turn_request::Subject::GameId(game_id.clone()));
            let suggested = ann.suggest_turn(SuggestTurnRequest { subject, ..Default::default() }).await?;
            ann.play_turn(suggested.turn.unwrap_or_default()).await?;
        } else if game.state() == GameState::RoundOver {
            ann.start_next_round(StartNextRoundRequest { game_id: game_id.clone(), ..Default::default() }).await?;
        }
    }
    Ok(())
}
