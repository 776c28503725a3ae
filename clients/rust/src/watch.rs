//! A watch that reconnects and resumes by itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout, Instant};
use tonic::{Code, Status, Streaming};

use crate::config::jittered;
use crate::connections::Place;
use crate::v1::{ErrorReason, Game, GameChange, WatchContent, WatchGameRequest, WatchGameResponse};
use crate::{Refusal, Rummikub};

/// An update of a watched game. `Closing` and `Heartbeat` are never passed on.
pub use crate::v1::watch_game_response::Update;

/// A connection without an update or a heartbeat for so long is lost. The server's heartbeat is 15 s.
const SILENCE: Duration = Duration::from_secs(40);
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LAST_BACKOFF: Duration = Duration::from_secs(5);

/// A stream of a game's updates: `while let Some(update) = watch.next().await`. Drop it to stop watching.
///
/// It begins with a snapshot, or after the `etag` of the request. If the connection is lost, or the
/// server stops, it reconnects and resumes without a gap. If the server no longer has the changes since then, a new
/// snapshot replaces everything before. It ends with the game, with a refusal, or with the last error if no server has
/// answered for 60 s ([`Watch::patience`]).
#[must_use = "a watch does nothing unless it is read"]
pub struct Watch {
    state: Option<State>,
    updates: Option<BoxStream<'static, Result<Update, Refusal>>>,
    reconnects: Arc<Notify>,
}

impl Watch {
    pub(crate) fn new(client: Rummikub, request: WatchGameRequest) -> Self {
        let reconnects = Arc::new(Notify::new());
        let state = State {
            seen: 0,
            lasting: Game::default(),
            client,
            request,
            reconnects: reconnects.clone(),
            updates: None,
            backoff: FIRST_BACKOFF,
            alive: Instant::now(),
            silence: SILENCE,
            patience: PATIENCE,
            over: false,
        };
        Self { state: Some(state), updates: None, reconnects }
    }

    /// Returns the watch that gives up when no server has answered for so long. Set it before the first update.
    pub fn patience(mut self, patience: Duration) -> Self {
        if let Some(state) = &mut self.state {
            state.patience = patience;
        }
        self
    }

    /// Counts a connection as lost after so much silence.
    #[cfg(test)]
    pub(crate) fn silence(mut self, silence: Duration) -> Self {
        if let Some(state) = &mut self.state {
            state.silence = silence;
        }
        self
    }

    /// Reconnects at once, without waiting for the loss of the connection to show: when a program comes back to the
    /// foreground, or the network has changed.
    pub fn reconnect(&self) {
        self.reconnects.notify_one();
    }

    /// Returns the next update, None at the end.
    pub async fn next(&mut self) -> Option<Result<Update, Refusal>> {
        StreamExt::next(self).await
    }
}

impl Stream for Watch {
    type Item = Result<Update, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(state) = self.state.take() {
            self.updates = Some(Box::pin(stream::unfold(state, State::step)));
        }
        self.updates.as_mut().map_or(Poll::Ready(None), |updates| updates.poll_next_unpin(context))
    }
}

/// A game as it is now and after every change: `while let Some(game) = games.next().await`. Drop it to stop watching.
#[must_use = "a watch does nothing unless it is read"]
pub struct Games(Watch);

impl Games {
    pub(crate) fn new(watch: Watch) -> Self {
        Self(watch)
    }

    /// Returns the game after the next change, None at the end.
    pub async fn next(&mut self) -> Option<Result<Game, Refusal>> {
        loop {
            match self.0.next().await? {
                Ok(Update::Snapshot(game) | Update::Game(game)) => return Some(Ok(game)),
                Ok(_) => {} // who is connected, for example
                Err(refusal) => return Some(Err(refusal)),
            }
        }
    }
}

/// The position and the connection of a watch.
struct State {
    client: Rummikub,
    /// The request with which the watch resumes.
    request: WatchGameRequest,
    /// The revision of the last change that was passed on.
    seen: u32,
    /// What never changes, which only the first game of a stream has.
    lasting: Game,
    reconnects: Arc<Notify>,
    updates: Option<(Streaming<WatchGameResponse>, Place)>,
    backoff: Duration,
    /// When a server last sent anything, or the reader began to wait.
    alive: Instant,
    silence: Duration,
    patience: Duration,
    over: bool,
}

impl State {
    /// Returns the next update with the state after it; None at the end.
    async fn step(mut self) -> Option<(Result<Update, Refusal>, Self)> {
        self.alive = Instant::now(); // the time since the last update was the reader's
        while !self.over {
            let reconnects = self.reconnects.clone();
            let received = tokio::select! {
                () = reconnects.notified() => {
                    self.updates = None;
                    continue;
                }
                received = timeout(self.silence, self.receive()) => received,
            };
            let update = match received {
                Ok(Ok(Some(response))) => self.accept(response).await,
                Ok(Ok(None)) => return None,
                Ok(Err(status)) => self.recover(status).await.err().map(Err),
                Err(_) => {
                    let text = format!("the server has sent nothing for {:?}", self.silence);
                    self.recover(Status::unavailable(text)).await.err().map(Err)
                }
            };
            if let Some(update) = update {
                self.over = update.is_err();
                return Some((update, self));
            }
        }
        None
    }

    /// Receives the next message, after opening the stream if it is not open.
    async fn receive(&mut self) -> Result<Option<WatchGameResponse>, Status> {
        if self.updates.is_none() {
            self.updates = Some(self.client.open_watch(self.request.clone()).await?);
        }
        match &mut self.updates {
            Some((updates, _)) => updates.message().await,
            None => Ok(None),
        }
    }

    /// Moves the position, and returns the update if it is to be passed on.
    async fn accept(&mut self, response: WatchGameResponse) -> Option<Result<Update, Refusal>> {
        self.alive = Instant::now();
        self.backoff = FIRST_BACKOFF;
        let mut update = response.update?; // none: an update that is newer than this client
        match &mut update {
            Update::Heartbeat(_) => return None,
            Update::Closing(closing) => {
                let delay = closing.retry_delay.and_then(|delay| Duration::try_from(delay).ok());
                self.updates = None;
                sleep(jittered(delay.unwrap_or(FIRST_BACKOFF))).await;
                self.alive = Instant::now();
                return None;
            }
            Update::Snapshot(game) | Update::Game(game) => {
                self.seen = game.revision;
                self.complete(game);
                self.request.etag.clone_from(&game.etag);
            }
            Update::Change(change) if !self.is_next(change) => return None,
            Update::Change(_) | Update::Draft(_) | Update::Presence(_) => {}
        }
        Some(Ok(update))
    }

    /// Moves the position to a change; returns whether the change is new.
    fn is_next(&mut self, change: &GameChange) -> bool {
        let is_new = change.revision > self.seen;
        self.seen = self.seen.max(change.revision);
        // With WATCH_CONTENT_BOTH the game follows, and the stream resumes from games only.
        if self.request.content() != WatchContent::Both {
            self.request.etag.clone_from(&change.etag);
        }
        is_new
    }

    /// Gives a game what never changes, which only the first game of a stream has.
    fn complete(&mut self, game: &mut Game) {
        let (given, taken) = if game.ruleset.is_some() { (&*game, &mut self.lasting) } else { (&self.lasting, game) };
        taken.ruleset.clone_from(&given.ruleset);
        taken.settings.clone_from(&given.settings);
        taken.visibility = given.visibility;
        taken.labels.clone_from(&given.labels);
    }

    /// Waits before the next connection; returns the error if there should be none.
    async fn recover(&mut self, status: Status) -> Result<(), Refusal> {
        self.updates = None;
        let refusal = self.client.refusal(status);
        let reason = refusal.reason();
        if reason == ErrorReason::HistoryUnavailable && !self.request.etag.is_empty() {
            self.request.etag.clear();
            return Ok(());
        }
        let is_lost = matches!(refusal.code(), Code::Unavailable | Code::Cancelled)
            || (refusal.code() == Code::ResourceExhausted && reason == ErrorReason::Overloaded);
        let delay = jittered(self.backoff).max(refusal.retry_delay().unwrap_or_default());
        if !is_lost || self.alive.elapsed() + delay > self.patience {
            return Err(refusal);
        }
        self.backoff = (self.backoff * 2).min(LAST_BACKOFF);
        tokio::select! {
            () = sleep(delay) => {}
            () = self.reconnects.notified() => {}
        }
        Ok(())
    }
}
