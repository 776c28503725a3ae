//! Creates a game, seats Ann and a bot, and prints Ann's rack.

use rummikub_client::v1::{join_game_request::Game, *};
use rummikub_client::{Rummikub, Update};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".to_owned());
    let service = Rummikub::connect(&target)?;
    let created = service.create_game(CreateGameRequest::default()).await?;
    let game_id = created.game.unwrap_or_default().game_id;
    let (game, name) = (Some(Game::GameId(game_id.clone())), "Ann".to_owned());
    let host = service.seated(&created.host_token);
    let ann = host.join_game(JoinGameRequest { game, name, ..Default::default() }).await?;
    let ann = service.seated(&ann.seat_token);
    let level = BotLevel::Easy.into();
    ann.add_bot(AddBotRequest { game_id: game_id.clone(), level, ..Default::default() }).await?;
    ann.start_game(StartGameRequest { game_id: game_id.clone(), ..Default::default() }).await?;
    let mut watch = ann.watch(WatchGameRequest { game_id, ..Default::default() });
    if let Some(Update::Snapshot(game)) = watch.next().await.transpose()? {
        println!("Ann's rack: {}", rummikub_client::tiles::tiles_text(&game.rack));
    }
    Ok(())
}
