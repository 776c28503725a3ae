//! A server for tests that answers calls as scripted.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream};
use futures_util::StreamExt;
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::v1::watch_game_response::Update;
use crate::v1::{CreateGameRequest, CreateGameResponse, ErrorReason, Game, GameChange};
use crate::v1::{Refusal, WatchGameRequest, WatchGameResponse};
use crate::Rummikub;

/// How the server answers one call of WatchGame.
#[derive(Clone)]
pub(crate) struct Answer {
    pub updates: Vec<Option<Update>>,
    pub end: End,
}

/// How a stream ends after its updates.
#[derive(Clone)]
pub(crate) enum End {
    Ok,
    Error(Status),
    /// Never: no further message arrives.
    Silence,
}

/// A server and what it has received.
#[derive(Clone, Default)]
pub(crate) struct Server {
    pub watches: List<(WatchGameRequest, Instant)>,
    /// The requests with their authorization metadata.
    pub creations: List<(CreateGameRequest, Option<String>)>,
    watch_answers: List<Answer>,
    create_answers: List<Option<Status>>,
}

impl Server {
    /// Returns a server with the answers to the calls of WatchGame, in order.
    pub fn watched(answers: impl IntoIterator<Item = Answer>) -> Self {
        let server = Self::default();
        server.watch_answers.lock().unwrap().extend(answers);
        server
    }

    /// Returns a server with the answers to the calls of CreateGame: an error, or a game.
    pub fn creating(answers: impl IntoIterator<Item = Option<Status>>) -> Self {
        let server = Self::default();
        server.create_answers.lock().unwrap().extend(answers);
        server
    }

    /// Starts the server and returns a client of it.
    pub async fn start(&self) -> Rummikub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Rummikub::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        self.listen(listener);
        client
    }

    /// Serves on a listener.
    pub fn listen(&self, listener: TcpListener) {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connections = TcpListenerStream::new(listener);
        tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(service, connections));
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        match request.uri().path() {
            "/rummikub.v1.GameService/WatchGame" => {
                let service = tower::service_fn(move |request| std::future::ready(self.watch(request)));
                tonic::server::Grpc::new(ProstCodec::default()).server_streaming(service, request).await
            }
            "/rummikub.v1.GameService/CreateGame" => {
                let service = tower::service_fn(move |request| std::future::ready(self.create(request)));
                tonic::server::Grpc::new(ProstCodec::default()).unary(service, request).await
            }
            _ => Status::unimplemented("Method not found!").into_http(),
        }
    }

    fn watch(&self, request: Request<WatchGameRequest>) -> Result<Response<Updates>, Status> {
        self.watches.lock().unwrap().push((request.into_inner(), Instant::now()));
        let mut answers = self.watch_answers.lock().unwrap();
        let answer =
            if answers.is_empty() { return Err(Status::internal("no answer is left")) } else { answers.remove(0) };
        let is_refused = answer.updates.is_empty();
        let updates = stream::iter(answer.updates).map(|update| Ok(WatchGameResponse { update }));
        Ok(Response::new(match answer.end {
            End::Ok => updates.boxed(),
            End::Error(status) if is_refused => return Err(status),
            End::Error(status) => updates.chain(stream::iter([Err(status)])).boxed(),
            End::Silence => updates.chain(stream::pending()).boxed(),
        }))
    }

    fn create(&self, request: Request<CreateGameRequest>) -> Result<Response<CreateGameResponse>, Status> {
        let token = request.metadata().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        self.creations.lock().unwrap().push((request.into_inner(), token));
        let mut answers = self.create_answers.lock().unwrap();
        match if answers.is_empty() { None } else { answers.remove(0) } {
            Some(status) => Err(status),
            None => Ok(Response::new(CreateGameResponse::default())),
        }
    }
}

type List<T> = Arc<Mutex<Vec<T>>>;
type Updates = BoxStream<'static, Result<WatchGameResponse, Status>>;

/// Returns a snapshot at a revision.
pub(crate) fn snapshot(revision: u32) -> Option<Update> {
    Some(Update::Snapshot(Game { revision, etag: format!("etag-{revision}"), ..Game::default() }))
}

/// Returns the game after a change.
pub(crate) fn game(revision: u32) -> Option<Update> {
    Some(Update::Game(Game { revision, etag: format!("etag-{revision}"), ..Game::default() }))
}

/// Returns a change.
pub(crate) fn change(revision: u32) -> Option<Update> {
    Some(Update::Change(GameChange { revision, etag: format!("etag-{revision}"), ..GameChange::default() }))
}

/// Returns a status with a refusal.
pub(crate) fn refusal(code: Code, reason: i32) -> Status {
    let detail = Refusal { reason, ..Refusal::default() };
    let any =
        prost_types::Any { type_url: "type.googleapis.com/rummikub.v1.Refusal".into(), value: detail.encode_to_vec() };
    let status = tonic_types::Status { code: code as i32, message: "refused".into(), details: vec![any] };
    Status::with_details(code, "refused", status.encode_to_vec().into())
}

/// Returns a status with a refusal of a known reason.
pub(crate) fn refused(code: Code, reason: ErrorReason) -> Status {
    refusal(code, reason as i32)
}

/// The time for which tests wait before they fail.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
