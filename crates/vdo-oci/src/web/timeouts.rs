// SPDX-License-Identifier: Apache-2.0
//! The time limits of a connection, an answer and an upload; an answer may take longer, the more bytes have arrived.

use super::WebError;
use hyper::body::Bytes;
use reqwest::Response;
use std::time::Duration;
use tokio::time::Instant;
use vdo_api::types::Later;

/// Until a connection stands.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// What a server may be late with, and the bytes of each second after that.
const GRACE: Duration = Duration::from_secs(10);
const RATE: u32 = 4 * 1024;
/// For all of an answer that is held in memory.
const WHOLE: Duration = Duration::from_secs(120);
/// Between two pieces of a large one, however fast it was before.
const STALL: Duration = Duration::from_secs(30);
/// Until a server has stored what it was sent, and the bytes of each second that it may take meanwhile.
const STORING: Duration = Duration::from_secs(60);
const UPLOAD_RATE: u32 = 32 * 1024;

/// The clock of one answer.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    bytes: u64,
    grace: Duration,
    whole: Option<Duration>,
}

impl Clock {
    /// For an answer that is read at once.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            bytes: 0,
            grace: GRACE,
            whole: Some(WHOLE),
        }
    }

    /// For an answer whose size only its reader bounds: 4 KiB a second, and never 30 s without a byte.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            whole: None,
            ..Self::start()
        }
    }

    /// For an answer to so many bytes that are sent.
    #[must_use]
    pub fn sending(bytes: usize) -> Self {
        let sent = STORING.saturating_add(Duration::from_secs(bytes as u64 / u64::from(UPLOAD_RATE)));
        Self {
            grace: sent,
            whole: Some(sent.saturating_add(WHOLE)),
            ..Self::start()
        }
    }

    /// What this comes to, unless time runs out before.
    ///
    /// # Errors
    /// When it does.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, WebError> {
        tokio::time::timeout_at(self.end(Instant::now()), work)
            .await
            .map_err(|_| WebError::TooSlow {
                bytes: self.bytes,
                seconds: self.start.elapsed().as_secs(),
            })
    }

    /// Until when the next piece has to be there.
    fn end(&self, now: Instant) -> Instant {
        let earned = self.grace.saturating_add(Duration::from_secs(self.bytes / u64::from(RATE)));
        match self.whole {
            Some(whole) => self.start.later(earned.min(whole)),
            None => self.start.later(earned).min(now.later(STALL)),
        }
    }

    /// The next piece of an answer; none at its end.
    ///
    /// # Errors
    /// When it comes too slowly or not at all.
    pub async fn piece(&mut self, response: &mut Response) -> Result<Option<Bytes>, WebError> {
        let piece = self.within(response.chunk()).await??;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    /// All of an answer, if it has no more bytes than that.
    ///
    /// # Errors
    /// When it has more, or comes too slowly.
    pub async fn read(&mut self, mut response: Response, limit: usize) -> Result<Vec<u8>, WebError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            if bytes.len() + piece.len() > limit {
                return Err(WebError::TooLarge { limit });
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_any_number_of_bytes_has_an_end() {
        for bytes in [u64::MAX, i64::MAX as u64] {
            let clock = Clock {
                bytes,
                ..Clock::unlimited()
            };
            assert_eq!(clock.end(clock.start), clock.start + STALL);
            let clock = Clock {
                bytes,
                ..Clock::sending(usize::MAX)
            };
            assert!(clock.end(clock.start) > clock.start);
        }
        let now = Instant::now();
        assert!(now.later(Duration::MAX) > now);
    }

    #[test]
    fn clock_gives_more_time_the_more_has_come_and_never_waits_long_for_the_next_piece() {
        let second = Duration::from_secs;
        let mebibyte = 1 << 20;
        for (clock, bytes, after, expected) in [
            // Nothing comes; a byte now and then; 4 KiB a second.
            (Clock::start(), 0, 0, 10),
            (Clock::start(), 100, 9, 10),
            (Clock::start(), 40 << 10, 15, 20),
            // What is held in memory has to be there at some time, and a large blob has not.
            (Clock::start(), mebibyte, 100, 120),
            (Clock::unlimited(), 0, 0, 10),
            (Clock::unlimited(), mebibyte, 200, 230),
            (Clock::unlimited(), mebibyte, 250, 266),
            (Clock::sending(mebibyte as usize), 0, 0, 92),
        ] {
            let clock = Clock { bytes, ..clock };
            let end = clock.end(clock.start + second(after));
            assert_eq!((end - clock.start).as_secs(), expected, "{bytes} bytes, after {after} s");
        }
    }
}
