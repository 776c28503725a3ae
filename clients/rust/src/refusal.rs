//! The error of every call.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use prost::Message;
use tonic::{Code, ConnectError, Status, TimeoutExpired};
use tonic_types::StatusExt;

use crate::v1;
use crate::v1::ErrorReason;

/// Why a call failed. `Display` is one line for a developer: what is wrong, and what to do where that is not obvious.
///
/// Do not show it to players: `ListMessages` has their texts, whose braces [`Refusal::metadata`] fills.
#[derive(Clone)]
pub struct Refusal(Box<Parts>);

#[derive(Clone)]
struct Parts {
    status: Status,
    detail: v1::Refusal,
    target: String,
}

impl Refusal {
    pub(crate) fn new(status: Status, target: &str) -> Self {
        let detail = detail(&status).unwrap_or_default();
        Self(Box::new(Parts { status, detail, target: target.to_owned() }))
    }

    /// Returns the status code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.status.code()
    }

    /// Returns the reason; `Unspecified` if the server gave none, or one that is unknown to this client.
    #[must_use]
    pub fn reason(&self) -> ErrorReason {
        self.0.detail.reason()
    }

    /// Returns the number of the reason, also of an unknown one; 0 if the server gave none.
    #[must_use]
    pub fn reason_number(&self) -> i32 {
        self.0.detail.reason
    }

    /// Returns the values that belong to the reason, under the keys documented in `ErrorReason`.
    #[must_use]
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.0.detail.metadata
    }

    /// Returns the violations of a refused turn, 16 at most; empty if the call was refused for another reason.
    #[must_use]
    pub fn violations(&self) -> &[v1::Violation] {
        &self.0.detail.violations
    }

    /// Returns the paths of the invalid fields of the request.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let request = self.0.status.get_details_bad_request();
        request.into_iter().flat_map(|request| request.field_violations).map(|violation| violation.field).collect()
    }

    /// Returns the delay before a retry, if the server asks for one.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.status.get_details_retry_info()?.retry_delay
    }

    /// Returns the status of the call.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.0.status
    }

    /// Returns what to do about it; "" where that is obvious.
    fn advice(&self) -> String {
        let advice = match self.reason() {
            ErrorReason::StaleState => "read the game again and decide again",
            ErrorReason::HistoryUnavailable => "start over without an etag",
            ErrorReason::GameNotFound => "check the game's id; games expire",
            ErrorReason::TokenVoid => "use the token that replaced it, or join again",
            ErrorReason::NotAPlayer => "use client.seated(token) with the token of a seat of this game",
            ErrorReason::AuthorizationMalformed => "pass the token as JoinGame or CreateGame returned it",
            ErrorReason::DuplicateRequest => "use a fresh request_id for a different request",
            ErrorReason::Unspecified if self.reason_number() != 0 => {
                return format!("reason {} is newer than this client; update it", self.reason_number());
            }
            _ => match self.code() {
                Code::Unimplemented => "the server is older than this client; update the server or avoid this RPC",
                Code::DeadlineExceeded => {
                    "send the same request with the same request_id again, or allow more time with client.within"
                }
                _ => return self.retry_delay().map_or_else(String::new, |delay| format!("retry after {delay:?}")),
            },
        };
        advice.to_owned()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, target) = (&self.0.status, &self.0.target);
        if is_unreachable(status) {
            let cause = root_cause(status);
            let advice = if target.starts_with("https:") {
                "check the address and the server's certificate"
            } else {
                "start one with `make run`"
            };
            return write!(formatter, "no service answers at {target} ({cause}); {advice}");
        }
        if is_lost(status) {
            let cause = root_cause(status);
            return write!(
                formatter,
                "the connection to {target} was lost ({cause}); retry, and use https:// if the server has TLS"
            );
        }
        write!(formatter, "{}", status.message())?;
        let advice = self.advice();
        if status.message().is_empty() {
            write!(formatter, "{}", self.code())?;
        }
        if advice.is_empty() {
            Ok(())
        } else {
            write!(formatter, "; {advice}")
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        write!(formatter, "Refusal({:?}, {reason:?}, {:?}: {self})", self.code(), self.metadata())
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.status)
    }
}

impl From<Status> for Refusal {
    /// Returns the refusal of a call of a tonic stub.
    fn from(status: Status) -> Self {
        Self::new(normalized(status), "the server's address")
    }
}

/// Returns the detail `Refusal` of a status.
fn detail(status: &Status) -> Option<v1::Refusal> {
    let details = tonic_types::Status::decode(status.details()).ok()?.details;
    let found = details.into_iter().find(|detail| detail.type_url.ends_with("/rummikub.v1.Refusal"))?;
    v1::Refusal::decode(found.value.as_slice()).ok()
}

/// Returns a status with the code that gRPC gives to a lost connection: tonic has several.
pub(crate) fn normalized(status: Status) -> Status {
    let code = match status.code() {
        _ if has_cause::<TimeoutExpired>(&status) => Code::DeadlineExceeded,
        Code::Unavailable => return status,
        _ if is_lost(&status) => Code::Unavailable,
        _ => return status,
    };
    let mut changed = Status::new(code, status.message());
    if let Some(cause) = root(&status).map(ToString::to_string) {
        changed.set_source(std::sync::Arc::new(Lost(cause)));
    }
    changed
}

/// The cause of a lost connection.
#[derive(Debug)]
struct Lost(String);

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Lost {}

/// Whether the transport failed, not the call: statuses of the server have no source.
fn is_lost(status: &Status) -> bool {
    let is_code = matches!(status.code(), Code::Unknown | Code::Internal | Code::Cancelled | Code::Unavailable);
    is_code && status.source().is_some()
}

/// Whether no connection could be made, so that nothing was sent.
pub(crate) fn is_unreachable(status: &Status) -> bool {
    has_cause::<ConnectError>(status)
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    causes(status).any(<dyn Error>::is::<E>)
}

fn root(status: &Status) -> Option<&(dyn Error + 'static)> {
    causes(status).last()
}

fn root_cause(status: &Status) -> String {
    root(status).map_or_else(|| status.message().to_owned(), ToString::to_string)
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&cause| cause.source())
}
