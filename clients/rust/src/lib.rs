#![doc = include_str!("../README.md")]

mod client;
#[cfg(test)]
mod client_tests;
mod config;
mod connections;
mod refusal;
#[cfg(test)]
mod scripted;
pub mod tiles;
pub mod turns;
mod watch;
#[cfg(test)]
mod watch_tests;

/// The messages, enums and tonic stubs of the contract, generated from `proto/`.
#[allow(missing_docs, clippy::all, rustdoc::all)]
#[rustfmt::skip]
#[path = "gen/rummikub.v1.rs"]
pub mod v1;

/// The methods of [`Rummikub`], generated from `proto/`.
#[allow(clippy::all, rustdoc::all)]
#[rustfmt::skip]
#[path = "gen/calls.rs"]
mod calls;

pub use client::{new_request_id, Call, Rummikub, Seat};
pub use refusal::Refusal;
pub use watch::{Games, Update, Watch};
