// SPDX-License-Identifier: Apache-2.0
//! Starts the operator's log: one line per event on stderr, as text or JSON, with a level filter.

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logging cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is none.
    #[error("{level:?} is not a log level; write error, warn, info, debug, trace, or a filter such as info,vdo::vcenter=debug")]
    Level {
        /// What was given.
        level: String,
        /// What is wrong with it, where the filter's parser names it.
        #[source]
        source: Option<ParseError>,
    },
    /// Someone logs already.
    #[error("logging was started twice in one process; start it in main only")]
    Twice(#[source] TryInitError),
}

/// Starts logging for the whole process. Call it once, first thing in `main`.
///
/// # Errors
/// When the level is not one, or logging was started before.
pub fn init(level: &str, format: LogFormat) -> Result<(), TelemetryError> {
    let filter = filter(level)?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
    };
    Registry::default()
        .with(lines.with_filter(filter))
        .try_init()
        .map_err(TelemetryError::Twice)
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    const WORDS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let wrong = |source| TelemetryError::Level {
        level: level.to_owned(),
        source,
    };
    // The parser takes a bare word that is not a level, such as `inof`, for a target of that name, and nothing for silence.
    let known = |part: &str| part.contains(['=', '[', ':']) || WORDS.contains(&part.trim().to_lowercase().as_str());
    if !level.split(',').all(known) {
        return Err(wrong(None));
    }
    // The client library wraps every line in a span of its own, and its `builder` logs each failed request, which the caller reports as
    // well: in an outage every line would be there twice. A level that names targets is left as it is.
    let quiet = if level.contains(['=', ',']) {
        String::new()
    } else {
        ",kube_runtime=warn,kube_client=warn,kube_client::client::builder=off".into()
    };
    EnvFilter::try_new(format!("{level}{quiet}")).map_err(|source| wrong(Some(source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_filter_valid_text_is_accepted() {
        for good in ["info", "DEBUG", "warn,vdo=trace", "vdo::vcenter=debug,off"] {
            assert!(filter(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn log_filter_malformed_text_is_rejected() {
        for bad in ["", " ", "inof", "info,", "vdo=loud"] {
            assert!(filter(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
