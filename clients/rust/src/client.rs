//! The connection to a service.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use tokio::time::{timeout_at, Instant};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::service::interceptor::InterceptedService;
use tonic::service::Interceptor;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::config::{self, Method, Throttle};
use crate::connections::{Connections, Place};
use crate::refusal::{is_unreachable, normalized, Refusal};
use crate::v1;
use crate::watch::{Games, Watch};

/// The period of keepalive pings. A server closes connections with pings more often than every 10 s.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// The time within which a ping is answered, or the connection is lost.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time within which one attempt to connect succeeds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a call waits for a server that does not accept connections. A server starts within 4 s.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// The longest delay between two attempts to connect.
const RECONNECT_BACKOFF: Duration = Duration::from_millis(500);
/// Trailing metadata: the delay in milliseconds before the next attempt; negative if there should be none.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A request of a unary RPC. Implemented for all of the contract; [`Rummikub::call`] sends it.
pub trait Call: prost::Message + Clone + Default + 'static {
    /// The response to the request.
    type Response: prost::Message + Default + 'static;
    /// The path of the RPC.
    const PATH: &'static str;

    /// Returns the field `request_id`, if the request has one.
    fn request_id(&mut self) -> Option<&mut String> {
        None
    }
}

/// A connection to a service, as a spectator or, with a token, as a seat of a game.
///
/// It is cheap to clone, and clones share the connection. The connection closes when the last clone is dropped. If it
/// is lost, the next call connects again. There is a connection for every 50 streams, such as watches, because a server
/// accepts 100 calls on one.
#[derive(Clone, Debug)]
pub struct Rummikub {
    shared: Arc<Shared>,
    token: Option<Arc<str>>,
    deadline: Option<Duration>,
    ready_within: Duration,
}

#[derive(Debug)]
struct Shared {
    connections: Connections,
    target: String,
    throttle: Throttle,
}

/// Sends a token with every call.
#[derive(Clone, Debug)]
pub struct Seat(Option<Arc<str>>);

impl Interceptor for Seat {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let value = format!("Bearer {token}").parse().map_err(|_| {
                Status::unauthenticated("the token has characters that no token has; pass it as JoinGame returned it")
            })?;
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }
}

impl Rummikub {
    /// Returns a connection to `host:port` or `http://host:port`, or to `https://host:port` with TLS and the roots of
    /// the system. The first call connects.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn connect(target: &str) -> Result<Self, Refusal> {
        let url = if target.contains("://") { target.to_owned() } else { format!("http://{target}") };
        let invalid = |cause: &dyn std::fmt::Display| {
            let text = format!("{target:?} is no address ({cause}); use host:port or https://host:port");
            Refusal::new(Status::invalid_argument(text), target)
        };
        let endpoint = Endpoint::from_shared(url).map_err(|error| invalid(&error))?;
        if endpoint.uri().scheme_str() != Some("https") {
            return Ok(Self::with_endpoint(endpoint));
        }
        #[cfg(feature = "tls")]
        {
            let tls = tonic::transport::ClientTlsConfig::new().with_native_roots();
            Ok(Self::with_endpoint(endpoint.tls_config(tls).map_err(|error| invalid(&error))?))
        }
        #[cfg(not(feature = "tls"))]
        Err(invalid(&"the feature `tls` of rummikub-client is off"))
    }

    /// Returns a connection to an endpoint of tonic, for certificates of your own. Keepalive and the connect timeout
    /// are set here.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn with_endpoint(endpoint: Endpoint) -> Self {
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        let target = endpoint.uri().to_string();
        let target = target.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let shared = Shared { connections: Connections::new(endpoint), target, throttle: config::throttle() };
        Self { shared: Arc::new(shared), token: None, deadline: None, ready_within: READY_WITHIN }
    }

    /// Returns the same connection with a seat's token, or the host token, on every call.
    #[must_use]
    pub fn seated(&self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    /// Returns the same connection with a deadline for every unary call, instead of the default of 10 s (of analysis,
    /// 70 s). The deadline includes retries.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// Returns the same connection whose calls wait so long, instead of 5 s, while no server accepts connections.
    #[must_use]
    pub fn ready_within(&self, patience: Duration) -> Self {
        Self { ready_within: patience, ..self.clone() }
    }

    /// Returns the connection with the token, for the tonic stubs in [`v1`]:
    /// `GameServiceClient::new(client.service())`. They send requests as they are: without retries, deadlines and
    /// request ids, and all of their streams on one connection, which carries 100 calls.
    #[must_use]
    pub fn service(&self) -> InterceptedService<Channel, Seat> {
        self.service_on(self.shared.connections.first())
    }

    fn service_on(&self, channel: Channel) -> InterceptedService<Channel, Seat> {
        InterceptedService::new(channel, Seat(self.token.clone()))
    }

    /// Watches a game. The stream reconnects and resumes by itself; see [`Watch`].
    pub fn watch(&self, request: v1::WatchGameRequest) -> Watch {
        Watch::new(self.clone(), request)
    }

    /// Watches a game as it is now and after every change. For the rest, it is a [`Watch`].
    pub fn watch_games(&self, game_id: &str) -> Games {
        let content = v1::WatchContent::Games.into();
        Games::new(self.watch(v1::WatchGameRequest { game_id: game_id.to_owned(), content, ..Default::default() }))
    }

    /// Judges turns as they come. The stream has no deadline and is not retried: send the turns without an answer
    /// again if it is lost.
    pub async fn stream_validate_turns(
        &self,
        turns: impl Stream<Item = v1::StreamValidateTurnsRequest> + Send + 'static,
    ) -> Result<impl Stream<Item = Result<v1::StreamValidateTurnsResponse, Refusal>>, Refusal> {
        use futures_util::TryStreamExt;
        let (channel, place) = self.shared.connections.enter();
        let mut stub = v1::validation_service_client::ValidationServiceClient::new(self.service_on(channel));
        let answers = stub.stream_validate_turns(turns).await.map_err(|status| self.refusal(status))?;
        let client = self.clone();
        Ok(answers.into_inner().map_err(move |status| {
            let _held = &place;
            client.refusal(status)
        }))
    }

    /// Sends the request of a unary RPC; each RPC also has a method of its own, such as [`Rummikub::create_game`].
    ///
    /// Fills in an empty `request_id`, retries on `UNAVAILABLE`, and waits for a server that is starting.
    pub async fn call<C: Call>(&self, mut request: C) -> Result<C::Response, Refusal> {
        if let Some(id) = request.request_id().filter(|id| id.is_empty()) {
            *id = new_request_id();
        }
        let method = config::method(C::PATH);
        let timeout = self.deadline.or(method.timeout);
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        self.attempts(&request, method, deadline).await.map_err(|status| self.refusal(status))
    }

    /// Sends a request until it is answered, or refused for good, or its deadline has passed.
    async fn attempts<C: Call>(
        &self,
        request: &C,
        method: &Method,
        deadline: Option<Instant>,
    ) -> Result<C::Response, Status> {
        let give_up_connecting = Instant::now() + self.ready_within;
        let (mut attempts, mut connects) = (0, 0);
        loop {
            let status = match self.attempt(request, deadline).await {
                Ok(response) => {
                    self.shared.throttle.succeeded();
                    return Ok(response);
                }
                Err(status) => status,
            };
            if status.code() != Code::Unavailable {
                return Err(status);
            }
            let delay = if is_unreachable(&status) {
                connects += 1; // nothing was sent: this is no attempt
                let delay = method.backoff(connects).min(RECONNECT_BACKOFF);
                (Instant::now() + delay < give_up_connecting).then_some(delay)
            } else {
                attempts += 1;
                let allowed = self.shared.throttle.failed() && attempts < method.max_attempts;
                allowed.then(|| pushback(&status).unwrap_or_else(|| Some(method.backoff(attempts)))).flatten()
            };
            match delay.map(|delay| Instant::now() + delay) {
                Some(next) if deadline.is_none_or(|deadline| next < deadline) => tokio::time::sleep_until(next).await,
                _ => return Err(status),
            }
        }
    }

    /// Sends a request once.
    async fn attempt<C: Call>(&self, request: &C, deadline: Option<Instant>) -> Result<C::Response, Status> {
        let mut message = Request::new(request.clone());
        if let Some(deadline) = deadline {
            message.set_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let mut grpc = Grpc::new(self.service());
        let path = PathAndQuery::from_static(C::PATH);
        let answer = async {
            grpc.ready().await.map_err(from_transport)?;
            grpc.unary(message, path, ProstCodec::<C, C::Response>::default()).await
        };
        let Some(deadline) = deadline else { return Ok(answer.await.map_err(normalized)?.into_inner()) };
        match timeout_at(deadline, answer).await {
            Ok(answered) => Ok(answered.map_err(normalized)?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("the server did not answer before the call's deadline")),
        }
    }

    /// Opens a watch once. The place is that of its stream.
    pub(crate) async fn open_watch(
        &self,
        request: v1::WatchGameRequest,
    ) -> Result<(Streaming<v1::WatchGameResponse>, Place), Status> {
        let (channel, place) = self.shared.connections.enter();
        let mut stub = v1::game_service_client::GameServiceClient::new(self.service_on(channel));
        Ok((stub.watch_game(request).await.map_err(normalized)?.into_inner(), place))
    }

    /// Returns a status as a refusal of this connection.
    pub(crate) fn refusal(&self, status: Status) -> Refusal {
        Refusal::new(normalized(status), &self.shared.target)
    }
}

/// Returns a request id: send it again with the same request when an answer was lost.
#[must_use]
pub fn new_request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns the delay for which the server asks: None if it does not, Some(None) if it wants no further attempt.
fn pushback(status: &Status) -> Option<Option<Duration>> {
    let value = status.metadata().get(PUSHBACK)?.to_str().ok()?;
    Some(value.parse().ok().map(Duration::from_millis))
}

fn from_transport(error: impl Into<Box<dyn Error + Send + Sync>>) -> Status {
    Status::from_error(error.into())
}
