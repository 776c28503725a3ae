use std::collections::HashSet;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::{Code, Status};

use crate::scripted::{refusal, Server};
use crate::v1::{CreateGameRequest, ErrorReason, GetGameRequest};
use crate::Rummikub;

fn unavailable(pushback: &str) -> Option<Status> {
    let mut status = Status::unavailable("busy");
    status.metadata_mut().insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    Some(status)
}

#[tokio::test]
async fn a_retried_request_keeps_the_id_that_the_client_fills_in() {
    let server = Server::creating([unavailable("1"), unavailable("1"), None]);
    let client = server.start().await.seated("secret");
    client.create_game(CreateGameRequest::default()).await.unwrap();
    client.create_game(CreateGameRequest::default()).await.unwrap();
    client.create_game(CreateGameRequest { request_id: "own".into(), ..Default::default() }).await.unwrap();
    let creations = server.creations.lock().unwrap();
    let ids: Vec<&str> = creations.iter().map(|(request, _)| request.request_id.as_str()).collect();
    assert!(ids[0].len() >= 22);
    assert_eq!(ids[..3], [ids[0]; 3]);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3);
    assert_eq!(ids[4], "own");
    assert!(creations.iter().all(|(_, token)| token.as_deref() == Some("Bearer secret")));
}

#[tokio::test]
async fn retries_end_after_five_attempts_or_when_the_server_wants_none() {
    let server = Server::creating((0..9).map(|_| unavailable("1")));
    let error = server.start().await.create_game(CreateGameRequest::default()).await.unwrap_err();
    assert_eq!((error.code(), server.creations.lock().unwrap().len()), (Code::Unavailable, 5));
    let server = Server::creating((0..9).map(|_| unavailable("-1")));
    server.start().await.create_game(CreateGameRequest::default()).await.unwrap_err();
    assert_eq!(server.creations.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Rummikub::connect(&address.to_string()).unwrap();
    let call = tokio::spawn(async move { client.create_game(CreateGameRequest::default()).await });
    tokio::time::sleep(Duration::from_secs(4)).await;
    Server::creating([None]).listen(TcpListener::bind(address).await.unwrap());
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_absent_server_is_named() {
    let client = Rummikub::connect("127.0.0.1:1").unwrap().ready_within(Duration::from_millis(100));
    let error = client.create_game(CreateGameRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    let text = error.to_string();
    assert!(text.starts_with("no service answers at 127.0.0.1:1 (") && text.ends_with("`make run`"), "{text}");
}

#[tokio::test]
async fn an_older_server_and_a_newer_reason_are_explained() {
    let server = Server::creating([Some(refusal(Code::FailedPrecondition, 9999))]);
    let client = server.start().await;
    let error = client.get_game(GetGameRequest::default()).await.unwrap_err();
    assert!(error.to_string().contains("older than this client"), "{error}");
    let error = client.create_game(CreateGameRequest::default()).await.unwrap_err();
    assert_eq!((error.reason(), error.reason_number()), (ErrorReason::Unspecified, 9999));
    assert!(error.to_string().contains("reason 9999"), "{error}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for target in ["", "no address", "http://"] {
        let error = Rummikub::connect(target).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_sent_is_refused() {
    let server = Server::default();
    let client = server.start().await.seated("two\nlines");
    let error = client.create_game(CreateGameRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated);
    assert!(error.to_string().contains("as JoinGame returned it"), "{error}");
}

#[test]
fn the_readme_shows_the_example() {
    assert!(include_str!("../README.md").contains(include_str!("../examples/game.rs")));
}
