//! The connections of a client: one for all calls, and further ones for many streams.

use std::sync::{Arc, Mutex, PoisonError};

use tonic::transport::{Channel, Endpoint};

/// Most streams of a connection. A server accepts 100 calls on it; one more waits in the client, without an error.
const STREAMS_EACH: usize = 50;

/// The connections of a client.
#[derive(Debug)]
pub(crate) struct Connections {
    endpoint: Endpoint,
    first: Channel,
    /// Each connection with a reference that each of its streams holds too.
    all: Mutex<Vec<(Channel, Place)>>,
}

/// The place of a stream on a connection, which is free when it is dropped.
pub(crate) type Place = Arc<()>;

impl Connections {
    /// Returns the connections to an endpoint. The first call connects.
    pub fn new(endpoint: Endpoint) -> Self {
        let first = endpoint.connect_lazy();
        Self { endpoint, all: Mutex::new(vec![(first.clone(), Place::default())]), first }
    }

    /// Returns the connection of calls that are no streams.
    pub fn first(&self) -> Channel {
        self.first.clone()
    }

    /// Returns a connection with room for a stream, a new one if need be, and the place of the stream on it.
    pub fn enter(&self) -> (Channel, Place) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.iter().find(|(_, place)| Arc::strong_count(place) <= STREAMS_EACH) {
            return found.clone();
        }
        let opened = (self.endpoint.connect_lazy(), Place::default());
        all.push(opened.clone());
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_fifty_streams_have_a_connection_and_those_that_end_make_room() {
        let connections = Connections::new(Endpoint::from_static("http://127.0.0.1:1"));
        let count = || connections.all.lock().unwrap().len();
        let mut places: Vec<_> = (0..101).map(|_| connections.enter().1).collect();
        assert_eq!(count(), 3);
        places.truncate(20);
        places.extend((0..81).map(|_| connections.enter().1));
        assert_eq!(count(), 3);
        drop(places);
        assert!(Arc::strong_count(&connections.enter().1) == 2);
    }
}
