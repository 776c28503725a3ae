//! A TCP relay whose connections can be cut, as a network does.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// An answer of the server that contains a game has more bytes than this; frames that control the connection do not.
const ANSWER_BYTES: usize = 200;

/// A relay to a server.
pub struct Relay {
    /// The address of the relay.
    pub address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    loses_answer: AtomicBool,
    cut: Notify,
}

impl Relay {
    /// Starts a relay to a server.
    pub async fn start(target: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let relay = Self { address: listener.local_addr()?.to_string(), state: Arc::default() };
        let (state, target) = (relay.state.clone(), target.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::SeqCst);
                let (state, target) = (state.clone(), target.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = state.relay(client, &target) => {}
                        () = state.cut.notified() => {}
                    }
                });
            }
        });
        Ok(relay)
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.state.cut.notify_waiters();
    }

    /// Cuts the connection in place of the next answer.
    pub fn lose_answer(&self) {
        self.state.loses_answer.store(true, Ordering::SeqCst);
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl State {
    /// Copies both ways until one side closes, or an answer is to be lost.
    async fn relay(&self, client: TcpStream, target: &str) -> io::Result<()> {
        let server = TcpStream::connect(target).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        let answers = async {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let count = from_server.read(&mut buffer).await?;
                if count == 0 || (count > ANSWER_BYTES && self.loses_answer.swap(false, Ordering::SeqCst)) {
                    return Ok(());
                }
                to_client.write_all(&buffer[..count]).await?;
            }
        };
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_server) => Ok(()),
            result = answers => result,
        }
    }
}
