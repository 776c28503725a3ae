use std::time::{Duration, Instant};

use tokio::time::timeout;
use tonic::{Code, Status};

use crate::scripted::{change, game, refused, snapshot, Answer, End, Server, PATIENCE};
use crate::v1::watch_game_response::Update;
use crate::v1::{
    ruleset, Closing, ErrorReason, Game, Heartbeat, MeldingRuleset, Preset, Ruleset, Visibility, WatchContent,
    WatchGameRequest,
};
use crate::{Refusal, Watch};

fn answer(updates: impl IntoIterator<Item = Option<Update>>, end: End) -> Answer {
    Answer { updates: updates.into_iter().collect(), end }
}

fn lost() -> End {
    End::Error(Status::unavailable("lost"))
}

/// Returns the revisions of all updates, negative for snapshots, and the error at the end.
async fn revisions(mut watch: Watch) -> (Vec<i64>, Option<Refusal>) {
    let mut seen = Vec::new();
    while let Some(update) = timeout(PATIENCE, watch.next()).await.expect("the watch has no end") {
        match update {
            Ok(Update::Snapshot(game)) => seen.push(-i64::from(game.revision)),
            Ok(Update::Change(change)) => seen.push(change.revision.into()),
            Ok(Update::Game(game)) => seen.push(game.revision.into()),
            Ok(_) => seen.push(0),
            Err(error) => {
                assert!(timeout(PATIENCE, watch.next()).await.unwrap().is_none());
                return (seen, Some(error));
            }
        }
    }
    (seen, None)
}

/// Returns the etags with which the watch has opened streams.
fn etags(server: &Server) -> Vec<String> {
    server.watches.lock().unwrap().iter().map(|(request, _)| request.etag.clone()).collect()
}

#[tokio::test]
async fn a_lost_stream_resumes_after_the_last_change() {
    let ends = [lost(), End::Error(Status::cancelled("cut")), End::Ok];
    let updates = [vec![snapshot(3), change(4)], vec![change(5)], vec![change(6)]];
    let server = Server::watched(updates.into_iter().zip(ends).map(|(updates, end)| answer(updates, end)));
    let (seen, error) = revisions(server.start().await.watch(WatchGameRequest::default())).await;
    assert_eq!(seen, [-3, 4, 5, 6]);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(etags(&server), ["", "etag-4", "etag-5"]);
}

#[tokio::test]
async fn heartbeats_and_unknown_updates_are_passed_over() {
    let heartbeat = Some(Update::Heartbeat(Heartbeat { revision: 3 }));
    let server = Server::watched([answer([snapshot(3), heartbeat, None, change(4)], End::Ok)]);
    assert_eq!(revisions(server.start().await.watch(WatchGameRequest::default())).await.0, [-3, 4]);
}

#[tokio::test]
async fn every_game_has_what_only_the_first_one_of_a_stream_has() {
    let melding = MeldingRuleset { preset: Preset::GuideA.into(), ..Default::default() };
    let ruleset = Ruleset { game: Some(ruleset::Game::Melding(melding)) };
    let labels = [("region".to_string(), "eu".to_string())].into();
    let whole = Game {
        ruleset: Some(ruleset),
        visibility: Visibility::Public.into(),
        labels,
        revision: 3,
        ..Default::default()
    };
    for first in [Update::Snapshot(whole.clone()), Update::Game(whole.clone())] {
        let server = Server::watched([answer([Some(first), game(4), game(5)], End::Ok)]);
        let mut games = server.start().await.watch_games("g");
        let mut seen = 0;
        while let Some(game) = timeout(PATIENCE, games.next()).await.expect("the watch has no end") {
            let game = game.unwrap();
            assert_eq!((&game.ruleset, &game.labels), (&whole.ruleset, &whole.labels));
            assert_eq!(game.visibility, whole.visibility);
            seen += 1;
        }
        assert_eq!(seen, 3);
    }
}

#[tokio::test]
async fn a_watch_starts_over_when_its_history_is_gone() {
    let gone = End::Error(refused(Code::OutOfRange, ErrorReason::HistoryUnavailable));
    let server = Server::watched([answer([], gone), answer([snapshot(2), change(3)], End::Ok)]);
    let request = WatchGameRequest { etag: "etag-9".into(), ..Default::default() };
    let (seen, error) = revisions(server.start().await.watch(request)).await;
    assert_eq!(seen, [-2, 3], "{error:?}");
    assert_eq!(etags(&server), ["etag-9", ""]);
}

#[tokio::test]
async fn closing_waits_for_the_delay_of_the_server() {
    let retry_delay = Some(prost_types::Duration { seconds: 0, nanos: 500_000_000 });
    let closing = Some(Update::Closing(Closing { retry_delay, ..Default::default() }));
    let server = Server::watched([answer([snapshot(3), closing], End::Ok), answer([change(4)], End::Ok)]);
    assert_eq!(revisions(server.start().await.watch(WatchGameRequest::default())).await.0, [-3, 4]);
    let watches = server.watches.lock().unwrap();
    assert!(watches[1].1 - watches[0].1 > Duration::from_millis(390));
}

#[tokio::test]
async fn silence_is_a_lost_connection() {
    let server = Server::watched([answer([snapshot(3)], End::Silence), answer([change(4)], End::Ok)]);
    let watch = server.start().await.watch(WatchGameRequest::default()).silence(Duration::from_millis(300));
    assert_eq!(revisions(watch).await.0, [-3, 4]);
}

#[tokio::test]
async fn the_time_of_a_slow_reader_is_not_silence() {
    let server = Server::watched([answer([snapshot(3)], lost()), answer([change(4)], End::Ok)]);
    let mut watch = server.start().await.watch(WatchGameRequest::default()).patience(Duration::from_secs(1));
    watch.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(revisions(watch).await.0, [4]);
}

#[tokio::test]
async fn reconnect_does_not_wait_for_silence() {
    let server = Server::watched([answer([snapshot(3)], End::Silence), answer([change(4)], End::Ok)]);
    let mut watch = server.start().await.watch(WatchGameRequest::default());
    watch.next().await.unwrap().unwrap();
    watch.reconnect();
    let start = Instant::now();
    assert_eq!(revisions(watch).await.0, [4]);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_refusal_ends_the_watch() {
    let reason = ErrorReason::GameNotFound;
    let server = Server::watched([answer([], End::Error(refused(Code::NotFound, reason)))]);
    let (seen, error) = revisions(server.start().await.watch(WatchGameRequest::default())).await;
    assert!(seen.is_empty());
    assert_eq!(error.unwrap().reason(), reason);
}

#[tokio::test]
async fn an_overloaded_server_is_tried_again() {
    let overloaded = refused(Code::ResourceExhausted, ErrorReason::Overloaded);
    let server = Server::watched([answer([], End::Error(overloaded)), answer([snapshot(3)], End::Ok)]);
    assert_eq!(revisions(server.start().await.watch(WatchGameRequest::default())).await.0, [-3]);
}

#[tokio::test]
async fn a_watch_gives_up_with_the_last_error() {
    let server = Server::watched((0..20).map(|_| answer([], lost())));
    let watch = server.start().await.watch(WatchGameRequest::default()).patience(Duration::from_secs(1));
    let start = Instant::now();
    let (seen, error) = revisions(watch).await;
    assert!(seen.is_empty());
    assert_eq!(error.unwrap().code(), Code::Unavailable);
    assert!((Duration::from_millis(400)..Duration::from_secs(3)).contains(&start.elapsed()));
    assert!((2..6).contains(&etags(&server).len()));
}

#[tokio::test]
async fn changes_with_games_resume_from_the_last_game() {
    let server = Server::watched([
        answer([snapshot(3), change(4), game(4), change(5)], lost()),
        answer([change(5), game(5)], End::Ok),
    ]);
    let request = WatchGameRequest { content: WatchContent::Both.into(), ..Default::default() };
    assert_eq!(revisions(server.start().await.watch(request)).await.0, [-3, 4, 4, 5, 5]);
    assert_eq!(etags(&server)[1], "etag-4");
}
