//! The service config that all clients share: retries, throttling and deadlines.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// A copy of `clients/service_config.json`, made by the generator.
const SERVICE_CONFIG: &str = include_str!("gen/service_config.json");

static RETRIES: LazyLock<Retries> = LazyLock::new(|| Retries::parse(SERVICE_CONFIG));

/// Returns the settings of a method, by its path `/package.Service/Method`.
pub(crate) fn method(path: &str) -> &'static Method {
    RETRIES.method(path)
}

/// A bucket of retry tokens for one connection.
pub(crate) fn throttle() -> Throttle {
    Throttle { tokens: Mutex::new(RETRIES.max_tokens), max_tokens: RETRIES.max_tokens, ratio: RETRIES.token_ratio }
}

/// The settings of some methods.
#[derive(Debug)]
pub(crate) struct Method {
    /// `Service/Method`, `Service/` for all methods of a service, "" for all others.
    names: Vec<String>,
    /// The default deadline. None: no deadline.
    pub timeout: Option<Duration>,
    pub max_attempts: u32,
    pub initial_backoff: Duration,
    pub max_backoff: Duration,
    pub multiplier: f64,
}

/// The parsed service config.
struct Retries {
    methods: Vec<Method>,
    max_tokens: f64,
    token_ratio: f64,
}

impl Retries {
    /// Parses the config. It is embedded and tested, so a fault in it panics.
    fn parse(text: &str) -> Self {
        let config: Value = serde_json::from_str(text).expect("the service config is JSON");
        let methods = config["methodConfig"].as_array().expect("methodConfig is a list");
        Self {
            methods: methods.iter().map(Method::parse).collect(),
            max_tokens: config["retryThrottling"]["maxTokens"].as_f64().expect("maxTokens is a number"),
            token_ratio: config["retryThrottling"]["tokenRatio"].as_f64().expect("tokenRatio is a number"),
        }
    }

    /// Returns the most specific settings: of the method, else of its service, else of all.
    fn method(&self, path: &str) -> &Method {
        let name = path.trim_start_matches('/');
        let service = &name[..=name.find('/').expect("a path has a service and a method")];
        [name, service, ""]
            .iter()
            .find_map(|wanted| self.methods.iter().find(|method| method.names.iter().any(|known| known == wanted)))
            .expect("the service config has settings for all methods")
    }
}

impl Method {
    fn parse(config: &Value) -> Self {
        let retry = &config["retryPolicy"];
        let codes = retry["retryableStatusCodes"].as_array().expect("retryableStatusCodes is a list");
        assert!(codes.iter().all(|code| code == "UNAVAILABLE"), "only UNAVAILABLE is retried");
        Self {
            names: config["name"].as_array().expect("name is a list").iter().map(method_name).collect(),
            timeout: config.get("timeout").map(duration),
            max_attempts: retry["maxAttempts"].as_u64().and_then(|count| count.try_into().ok()).expect("maxAttempts"),
            initial_backoff: duration(&retry["initialBackoff"]),
            max_backoff: duration(&retry["maxBackoff"]),
            multiplier: retry["backoffMultiplier"].as_f64().expect("backoffMultiplier is a number"),
        }
    }

    /// Returns the delay before the next attempt, when so many have been made, with a jitter of 20 %.
    pub fn backoff(&self, attempts: u32) -> Duration {
        let exponent = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial_backoff.as_secs_f64() * self.multiplier.powi(exponent);
        jittered(Duration::from_secs_f64(seconds.min(self.max_backoff.as_secs_f64())))
    }
}

/// Returns a duration changed by up to 20 %, so that clients do not return all at once.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.4 * fastrand::f64())
}

fn method_name(name: &Value) -> String {
    name["service"]
        .as_str()
        .map_or_else(String::new, |service| format!("{service}/{}", name["method"].as_str().unwrap_or_default()))
}

fn duration(value: &Value) -> Duration {
    let text = value.as_str().and_then(|text| text.strip_suffix('s'));
    Duration::from_secs_f64(text.and_then(|seconds| seconds.parse().ok()).expect("a duration such as 0.2s"))
}

/// Stops retries while more than half of the tokens are spent, as gRPC's retry throttling does: a failure costs one, an
/// answer returns a part of one.
#[derive(Debug)]
pub(crate) struct Throttle {
    tokens: Mutex<f64>,
    max_tokens: f64,
    ratio: f64,
}

impl Throttle {
    /// Counts an answer.
    pub fn succeeded(&self) {
        self.add(self.ratio);
    }

    /// Counts a failure and returns whether a retry is allowed.
    pub fn failed(&self) -> bool {
        self.add(-1.0) > self.max_tokens / 2.0
    }

    fn add(&self, change: f64) -> f64 {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = (*tokens + change).clamp(0.0, self.max_tokens);
        *tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_most_specific_name_apply() {
        assert_eq!(method("/rummikub.v1.GameService/WatchGame").timeout, None);
        assert_eq!(method("/rummikub.v1.GameService/GetGame").timeout, Some(Duration::from_secs(10)));
        assert_eq!(method("/rummikub.v1.AnalysisService/SuggestTurn").timeout, Some(Duration::from_secs(70)));
    }

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        let method = method("/rummikub.v1.GameService/GetGame");
        for (attempts, seconds) in [(1, 0.2), (2, 0.4), (4, 1.6), (9, 2.0)] {
            let delay = method.backoff(attempts).as_secs_f64();
            assert!((seconds * 0.79..seconds * 1.21).contains(&delay), "{attempts}: {delay}");
        }
    }

    #[test]
    fn retries_stop_after_many_failures() {
        let throttle = throttle();
        let allowed = (0..500).filter(|_| throttle.failed()).count();
        assert_eq!(allowed, 249);
        (0..2_511).for_each(|_| throttle.succeeded());
        assert!(throttle.failed());
    }
}
