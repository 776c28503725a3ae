//! The conformance program of the Rust client; clients/conformance/README.md describes the checks.

mod relay;
mod wire;

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::try_join_all;
use futures_util::{stream, TryStreamExt};
use prost::Message;
use relay::Relay;
use rummikub_client::v1::game_event::Event;
use rummikub_client::v1::suggest_turn_request::Subject;
use rummikub_client::v1::{
    join_game_request, AddBotRequest, BatchValidateTurnsRequest, BotLevel, CreateGameRequest, ErrorReason, Game,
    GameState, GetGameRequest, GetGameResponse, JoinGameRequest, JoinGameResponse, PlayTurnRequest, ScoreRoundRequest,
    StartGameRequest, StartNextRoundRequest, StreamValidateTurnsRequest, SuggestTurnRequest, Table,
    ValidateDiscardTurnRequest, ValidateHandRequest, ValidateMeldsRequest, ValidatePlacementRequest,
    ValidateTurnRequest, ValidateTurnResponse, Violation, WatchContent, WatchGameRequest,
};
use rummikub_client::{tiles, turns, Call, Refusal, Rummikub, Update};
use serde_json::Value;
use wire::Wire;

type Outcome = Result<(), Box<dyn Error>>;

/// The largest number of turns in a batch.
const BATCH: usize = 100;

/// How many watches one client has open: more than a connection carries.
const WATCHES: usize = 150;

/// Fails with what differs.
macro_rules! expect {
    ($actual:expr, $expected:expr, $what:expr) => {
        let (actual, expected) = (&$actual, &$expected);
        if actual != expected {
            return Err(format!("{}: {actual:?} instead of {expected:?}", $what).into());
        }
    };
}

/// The service and its file of calls.
struct Service {
    target: String,
    games: Rummikub,
    validation: Rummikub,
    wire: Wire,
    /// The games to play, as id:token.
    seats: String,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let target = option("--target")?;
    let service = Service {
        games: Rummikub::connect(&target)?,
        validation: Rummikub::connect(&option("--validation")?)?,
        wire: Wire::read(Path::new(&option("--wire")?))?,
        seats: option("--games")?,
        target,
    };
    let passed = [
        check("wire", service.wire()).await,
        check("batch", service.batch()).await,
        check("stream", service.stream()).await,
        check("refusal", service.refusal()).await,
        check("game", service.game()).await,
        check("turns", service.turns()).await,
        check("rules", service.rules()).await,
        check("names", service.names()).await,
        check("unknown", service.unknown()).await,
        check("deadline", service.deadline()).await,
        check("retry", service.retry()).await,
        check("watches", service.watches()).await,
    ];
    Ok(if passed.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the value of a command-line option.
fn option(name: &str) -> Result<String, String> {
    std::env::args().skip_while(|argument| argument != name).nth(1).ok_or_else(|| format!("{name} is required"))
}

/// Runs a check, prints its line, and returns whether it passed.
async fn check(name: &str, outcome: impl Future<Output = Outcome>) -> bool {
    let start = Instant::now();
    let result = outcome.await;
    let seconds = start.elapsed().as_secs_f64();
    match &result {
        Ok(()) => println!("PASS {name} {seconds:.2}"),
        Err(error) => println!("FAIL {name} {seconds:.2} {}", error.to_string().replace('\n', " ")),
    }
    result.is_ok()
}

impl Service {
    async fn wire(&self) -> Outcome {
        for call in &self.wire.calls {
            match wire::rpc(call).rsplit('/').next() {
                Some("ValidateMelds") => self.replay::<ValidateMeldsRequest>(call).await,
                Some("ValidateTurn") => self.replay::<ValidateTurnRequest>(call).await,
                Some("ValidatePlacement") => self.replay::<ValidatePlacementRequest>(call).await,
                Some("ValidateHand") => self.replay::<ValidateHandRequest>(call).await,
                Some("ValidateDiscardTurn") => self.replay::<ValidateDiscardTurnRequest>(call).await,
                Some("ScoreRound") => self.replay::<ScoreRoundRequest>(call).await,
                _ => Err("this program does not know the RPC".into()),
            }
            .map_err(|error| format!("{}: {error}", call["id"]))?;
        }
        Ok(())
    }

    /// Sends a call and compares the answer.
    async fn replay<C: Call>(&self, call: &Value) -> Outcome
    where
        C::Response: PartialEq + Debug,
    {
        let answer = self.validation.call(self.wire.parse::<C>(call, "request")?).await;
        let Some(error) = call.get("error") else {
            expect!(answer?, self.wire.parse::<C::Response>(call, "response")?, "response");
            return Ok(());
        };
        let refusal = refused(answer)?;
        let expected = self.wire.refusal(call)?;
        let fields: Vec<&str> = error["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        expect!(format!("{:?}", refusal.code()).to_uppercase(), text(&error["code"]).replace('_', ""), "code");
        expect!(refusal.reason_number(), expected.reason, "reason");
        expect!(refusal.metadata(), &expected.metadata, "metadata");
        expect!(refusal.violations(), &expected.violations[..], "violations");
        expect!(refusal.fields(), fields, "fields");
        Ok(())
    }

    async fn batch(&self) -> Outcome {
        let mut groups: Vec<Vec<(ValidateTurnRequest, ValidateTurnResponse)>> = Vec::new();
        for turn in self.wire.turns()? {
            let same = groups.iter_mut().find(|group| group[0].0.ruleset == turn.0.ruleset && group.len() < BATCH);
            match same {
                Some(group) => group.push(turn),
                None => groups.push(vec![turn]),
            }
        }
        for group in groups {
            let ruleset = group[0].0.ruleset;
            let (turns, expected): (Vec<_>, Vec<_>) =
                group.into_iter().map(|(turn, answer)| (ValidateTurnRequest { ruleset: None, ..turn }, answer)).unzip();
            let answer = self.validation.batch_validate_turns(BatchValidateTurnsRequest { ruleset, turns }).await?;
            expect!(answer.turns, expected, "answers");
        }
        Ok(())
    }

    async fn stream(&self) -> Outcome {
        let (turns, expected): (Vec<_>, Vec<_>) = self.wire.turns()?.into_iter().unzip();
        let requests = turns.into_iter().enumerate().map(|(index, turn)| {
            let ruleset = Some(turn.ruleset.unwrap_or_default());
            let turn = Some(ValidateTurnRequest { ruleset, ..turn });
            StreamValidateTurnsRequest { turn, correlation_id: index.to_string() }
        });
        let requests: Vec<_> = requests.collect();
        let answers = self.validation.stream_validate_turns(stream::iter(requests)).await?;
        let answers: Vec<_> = answers.try_collect().await?;
        expect!(answers.len(), expected.len(), "number of answers");
        for answer in answers {
            let index: usize = answer.correlation_id.parse()?;
            expect!(answer.turn.as_ref(), expected.get(index), format!("turn {index}"));
        }
        Ok(())
    }

    async fn refusal(&self) -> Outcome {
        let (game_id, ann) = self.game_of("Ann").await?;
        let bob = self.join(&self.games, &game_id, "Bob").await?;
        let seats = [&ann, &bob].map(|joined| self.games.seated(&joined.seat_token));
        let starting = StartGameRequest { game_id: game_id.clone(), ..Default::default() };
        let game = seats[0].start_game(starting).await?.game.ok_or("no game")?;
        let seat = game.turn.as_ref().ok_or("no turn")?.seat;
        let on_turn = &seats[usize::from(seat == bob.seat)];
        let mut turn = turns::play(&game, tiles::parse_melds("[R1 R2]")?);
        turn.validate_only = true;
        let refusal = refused(on_turn.play_turn(turn.clone()).await)?;
        // The dealt rack decides which violation is the first.
        let violations = refusal.violations();
        expect!(Some(refusal.reason()), violations.first().map(Violation::reason), "reason of an illegal turn");
        let violation = violations.iter().find(|violation| violation.reason() == ErrorReason::MeldTooShort);
        let violation = violation.ok_or("no violation MELD_TOO_SHORT")?;
        expect!(tiles::tiles_text(&violation.tiles), "R1 R2", "tiles of a short meld");

        let low = ValidateTurnRequest {
            rack: tiles::parse_tiles("R1 R2 R3")?,
            table_after: Some(Table { melds: tiles::parse_melds("[R1 R2 R3]")?, ..Default::default() }),
            has_melded: Some(false),
            ..Default::default()
        };
        let judged = self.validation.validate_turn(low).await?;
        let [violation] = &judged.violations[..] else { return Err("not one violation of an initial meld".into()) };
        expect!(violation.reason(), ErrorReason::InitialMeldBelowThreshold, "reason of a low initial meld");
        let numbers = ["total", "threshold"].map(|key| violation.metadata.get(key).copied());
        expect!(numbers, [Some(6), Some(30)], "metadata of a low initial meld");

        let stale = PlayTurnRequest { etag: format!("{}-{}", game.revision - 1, "0".repeat(32)), ..turn };
        let refusal = refused(on_turn.play_turn(stale).await)?;
        expect!(refusal.reason(), ErrorReason::StaleState, "reason of a stale turn");
        expect!(refusal.metadata().get("revision"), Some(&game.revision.to_string()), "current revision");

        let reading = GetGameRequest { game_id, ..Default::default() };
        let wrong = refused(self.games.seated(&"x".repeat(43)).get_game(reading.clone()).await)?;
        explained(&wrong, ErrorReason::TokenVoid, "join again")?;
        let malformed = refused(self.games.seated("two words").get_game(reading).await)?;
        explained(&malformed, ErrorReason::AuthorizationMalformed, "as JoinGame")?;
        let unknown = GetGameRequest { game_id: "0".repeat(32), ..Default::default() };
        explained(&refused(self.games.get_game(unknown.clone()).await)?, ErrorReason::GameNotFound, "game's id")?;
        let absent_server = Rummikub::connect("127.0.0.1:1")?.ready_within(Duration::from_millis(300));
        let absent = refused(absent_server.get_game(unknown).await)?;
        explained(&absent, ErrorReason::Unspecified, "no service answers at 127.0.0.1:1")?;
        explained(&absent, ErrorReason::Unspecified, "make run")
    }

    async fn game(&self) -> Outcome {
        for _ in 0..3 {
            if self.was_cut_twice().await? {
                return Ok(());
            }
        }
        Err("three rounds ended before the person's second turn".into())
    }

    /// Plays a round whose watch is cut in the person's first two turns; about one round in 600 has fewer.
    async fn was_cut_twice(&self) -> Result<bool, Box<dyn Error>> {
        let (game_id, ann) = self.game_of("Ann").await?;
        let person = self.games.seated(&ann.seat_token);
        for level in [BotLevel::Easy, BotLevel::Medium, BotLevel::Hard] {
            let request = AddBotRequest { game_id: game_id.clone(), level: level.into(), ..Default::default() };
            person.add_bot(request).await?;
        }
        let relay = Relay::start(&self.target).await?;
        let content = WatchContent::Both.into();
        let request = WatchGameRequest { game_id: game_id.clone(), content, ..Default::default() };
        let mut watch = Rummikub::connect(&relay.address)?.seated(&ann.seat_token).watch(request);
        person.start_game(StartGameRequest { game_id: game_id.clone(), ..Default::default() }).await?;
        let (mut view, mut revision) = (Game::default(), 0);
        let mut cuts = 0;
        while let Some(update) = watch.next().await {
            let change = match update? {
                Update::Snapshot(game) => {
                    expect!(revision, 0, "revision before a snapshot");
                    revision = game.revision;
                    if game.turn.as_ref().is_some_and(|turn| turn.seat == ann.seat) {
                        take_turn(&person, &game_id).await?;
                    }
                    continue;
                }
                Update::Game(game) => {
                    view = game;
                    continue;
                }
                Update::Change(change) => change,
                _ => continue,
            };
            expect!(change.revision, revision + 1, "the next revision");
            revision = change.revision;
            let events = change.events.into_iter().filter_map(|event| event.event);
            let mut turns = events.filter_map(|event| match event {
                Event::TurnStarted(started) => started.turn,
                _ => None,
            });
            if turns.next_back().is_some_and(|turn| turn.seat == ann.seat) {
                if cuts < 2 {
                    relay.cut(); // no change can have been received ahead in the person's turn
                    cuts += 1;
                }
                take_turn(&person, &game_id).await?;
            }
        }
        let game = person.get_game(GetGameRequest { game_id, ..Default::default() }).await?.game;
        let game = game.ok_or("no game")?;
        expect!(game.state(), GameState::Finished, "state");
        expect!(without_clock(view), without_clock(game), "the last view");
        if cuts < 2 {
            return Ok(false);
        }
        expect!(relay.connections(), 3, "connections");
        Ok(true)
    }

    /// Plays the games to their ends with suggested turns, all at the same time.
    async fn turns(&self) -> Outcome {
        try_join_all(self.seats.split(',').map(|seat| self.play(seat))).await?;
        Ok(())
    }

    /// Plays a game, given as id:token.
    async fn play(&self, seat: &str) -> Outcome {
        let (game_id, token) = seat.split_once(':').ok_or("--games has no id:token")?;
        let person = self.games.seated(token);
        let mut games = person.watch_games(game_id);
        while let Some(game) = games.next().await {
            let game = game?;
            if game.turn.as_ref().is_some_and(|turn| turn.seat == game.seat()) {
                take_turn(&person, game_id).await?;
            } else if game.state() == GameState::RoundOver {
                let next = StartNextRoundRequest { game_id: game_id.to_owned(), ..Default::default() };
                person.start_next_round(next).await?;
            }
        }
        Ok(())
    }

    /// Watches a game that two players join, and compares what never changes.
    async fn rules(&self) -> Outcome {
        let labels = [("mode".to_owned(), "conformance".to_owned())].into();
        let request = CreateGameRequest { labels, ..Default::default() };
        let created = self.games.create_game(request).await?.game.ok_or("no game")?;
        let mut games = self.games.watch_games(&created.game_id);
        let mut names = ["Ann", "Bob"].into_iter();
        while let Some(game) = games.next().await {
            let game = game?;
            expect!(game.ruleset, created.ruleset, "the ruleset");
            expect!(game.settings, created.settings, "the settings");
            expect!(game.visibility, created.visibility, "the visibility");
            expect!(game.labels, created.labels, "the labels");
            let Some(name) = names.next() else { return Ok(()) };
            self.join(&self.games, &created.game_id, name).await?;
        }
        Err("the watch ended".into())
    }

    async fn names(&self) -> Outcome {
        let (game_id, _) = self.game_of("Zoe\u{308}").await?;
        let mut players = Vec::new();
        for name in ["李雷", "שלום", "👨\u{200d}👩\u{200d}👧"] {
            players = self.join(&self.games, &game_id, name).await?.game.ok_or("no game")?.players;
        }
        let names: Vec<&str> = players.iter().map(|player| player.name.as_str()).collect();
        expect!(names, ["Zo\u{eb}", "李雷", "שלום", "👨\u{200d}👩\u{200d}👧"], "names");
        Ok(())
    }

    async fn unknown(&self) -> Outcome {
        let (game_id, _) = self.game_of("Ann").await?;
        let mut response = self.games.get_game(GetGameRequest { game_id, ..Default::default() }).await?;
        response.game.as_mut().ok_or("no game")?.state = 9999;
        let mut bytes = response.encode_to_vec();
        prost::encoding::uint32::encode(1000, &1, &mut bytes);
        let parsed = GetGameResponse::decode(bytes.as_slice())?;
        let game = parsed.game.as_ref().ok_or("no game")?;
        expect!((game.state, game.state()), (9999, GameState::Unspecified), "an unknown state");
        expect!(parsed, response, "a response with an unknown field");
        for river_index in [None, Some(0)] {
            let turn = ValidateTurnRequest { river_index, ..Default::default() };
            let parsed = ValidateTurnRequest::decode(turn.encode_to_vec().as_slice())?;
            expect!(parsed.river_index, river_index, "river_index");
        }
        let refusal = refused(self.validation.validate_turn(ValidateTurnRequest::default()).await)?;
        expect!(refusal.fields(), ["has_melded"], "the field that is not set");
        Ok(())
    }

    async fn deadline(&self) -> Outcome {
        let soon = Duration::from_millis(1);
        let turns: Vec<_> = self.wire.turns()?.into_iter().take(BATCH).map(|(turn, _)| turn).collect();
        let batch = BatchValidateTurnsRequest { ruleset: None, turns };
        let refusal = refused(self.validation.within(soon).batch_validate_turns(batch).await)?;
        expect!(format!("{:?}", refusal.code()), "DeadlineExceeded", "code");
        let (game_id, ann) = self.game_of("Ann").await?;
        let watcher = self.games.seated(&ann.seat_token);
        let request = WatchGameRequest { game_id: game_id.clone(), ..Default::default() };
        let mut watch = watcher.within(soon).watch(request);
        watch.next().await.ok_or("the watch has ended")??;
        tokio::time::sleep(Duration::from_millis(100)).await;
        watcher.add_bot(AddBotRequest { game_id, level: BotLevel::Easy.into(), ..Default::default() }).await?;
        while !matches!(watch.next().await.ok_or("the watch has ended")??, Update::Change(_)) {}
        Ok(())
    }

    async fn retry(&self) -> Outcome {
        let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let request = CreateGameRequest { request_id: format!("conformance-{nanoseconds}"), ..Default::default() };
        let created = self.games.create_game(request.clone()).await?;
        expect!(self.games.create_game(request).await?, created, "the second answer to CreateGame");

        let relay = Relay::start(&self.target).await?;
        let host = Rummikub::connect(&relay.address)?.seated(&created.host_token);
        let game_id = created.game.ok_or("no game")?.game_id;
        host.get_game(GetGameRequest { game_id: game_id.clone(), ..Default::default() }).await?;
        relay.lose_answer();
        let joined = self.join(&host, &game_id, "Ann").await?; // the client fills in the request id
        expect!(relay.connections(), 2, "connections");
        let seated = self.games.seated(&joined.seat_token);
        let game = seated.get_game(GetGameRequest { game_id, ..Default::default() }).await?.game.ok_or("no game")?;
        expect!((game.players.len(), game.seat()), (1, joined.seat), "players and seat");
        Ok(())
    }

    async fn watches(&self) -> Outcome {
        let client = Rummikub::connect(&self.target)?;
        let game = client.create_game(CreateGameRequest::default()).await?.game.ok_or("no game")?;
        let watching = WatchGameRequest { game_id: game.game_id.clone(), ..Default::default() };
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            let mut watch = client.watch(watching.clone());
            let Some(Ok(Update::Snapshot(first))) = watch.next().await else { return Err("no snapshot".into()) };
            expect!(first.game_id, game.game_id, "the first update");
            watches.push(watch);
        }
        let request = GetGameRequest { game_id: game.game_id.clone(), ..Default::default() };
        expect!(client.get_game(request).await?.game.ok_or("no game")?.game_id, game.game_id, "the game");
        Ok(())
    }

    /// Creates a game and seats its host; returns the id of the game.
    async fn game_of(&self, name: &str) -> Result<(String, JoinGameResponse), Box<dyn Error>> {
        let created = self.games.create_game(CreateGameRequest::default()).await?;
        let game_id = created.game.ok_or("no game")?.game_id;
        let joined = self.join(&self.games.seated(&created.host_token), &game_id, name).await?;
        Ok((game_id, joined))
    }

    async fn join(&self, client: &Rummikub, game_id: &str, name: &str) -> Result<JoinGameResponse, Refusal> {
        let game = Some(join_game_request::Game::GameId(game_id.to_owned()));
        client.join_game(JoinGameRequest { game, name: name.to_owned(), ..Default::default() }).await
    }
}

/// Takes the suggested turn.
async fn take_turn(person: &Rummikub, game_id: &str) -> Outcome {
    let subject = Some(Subject::GameId(game_id.to_owned()));
    let suggested = person.suggest_turn(SuggestTurnRequest { subject, ..Default::default() }).await?;
    person.play_turn(suggested.turn.ok_or("no turn is suggested")?).await?;
    Ok(())
}

/// Returns a view without what changes while the game does not.
fn without_clock(mut game: Game) -> Game {
    game.server_time = None;
    for player in &mut game.players {
        (player.is_connected, player.last_seen_time) = (None, None);
    }
    game
}

/// Returns the refusal of a call that has to be refused.
fn refused<T>(answer: Result<T, Refusal>) -> Result<Refusal, &'static str> {
    answer.err().ok_or("the call was not refused")
}

/// Checks the reason of a refusal, and that its text says what to do.
fn explained(refusal: &Refusal, reason: ErrorReason, advice: &str) -> Outcome {
    expect!(refusal.reason(), reason, "reason");
    let text = refusal.to_string();
    if text.contains(advice) {
        Ok(())
    } else {
        Err(format!("{text:?} does not say {advice:?}").into())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
