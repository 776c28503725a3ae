#![doc = include_str!("../README.md")]

mod client;
mod config;
mod refusal;
pub mod tiles;
mod watch;

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

pub use client::{Call, Rummikub, Seat};
pub use refusal::Refusal;
pub use watch::{Update, Watch};
